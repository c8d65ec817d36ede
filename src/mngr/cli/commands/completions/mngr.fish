function __mngr_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command mngr __complete -- $words[2..-1] "$current" 2>/dev/null
    if test $status -eq 9
        __fish_complete_path "$current"
    end
end
complete -c mngr -f -a '(__mngr_complete)'
