adress = 1
