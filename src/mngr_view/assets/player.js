const data = JSON.parse(document.getElementById("cast").textContent);
const box = document.getElementById("player");
AsciinemaPlayer.create({data}, box, {fit: "width", preload: true, poster: "npt:0:1"});
