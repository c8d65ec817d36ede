# bash breaks words at `=` and `:` too, hands them over in pieces, and replaces only the last
# piece: so join them to ask, and cut the part before the last piece off the answers.
_mngr() {
    local word joined='' value _ answer status
    local -a words=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        case $joined,$word in
            *[=:],*) words[${#words[@]}-1]+=$word ;;
            ?*,[=:]*) words[${#words[@]}-1]+=$word ;;
            *) words+=("$word") ;;
        esac
        joined=$word
    done
    answer=$(command mngr __complete -- "${words[@]}" 2>/dev/null)
    status=$?
    COMPREPLY=()
    if [ $status -eq 9 ]; then
        compopt -o default 2>/dev/null
        return
    fi
    local last=${words[${#words[@]}-1]}
    local head=${last%"${last##*[=:]}"}
    while IFS=$'\t' read -r value _; do
        [ -n "$value" ] && COMPREPLY+=("${value#"$head"}")
    done <<< "$answer"
    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _mngr mngr
