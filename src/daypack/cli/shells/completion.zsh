#compdef daypack
# Completion of daypack for zsh, printed by `daypack completion zsh`.

# Of a command (and action): its options, the values they take, its arguments in order, its actions.
_daypack_table() {
    case "$1" in
@TABLE@
    *) return 1 ;;
    esac
}

_daypack_add_kind() { # @session, @agent, @file, @folder, - for nothing, or words separated by |
    local -a names
    case "$1" in
    @session | @agent)
        names=("${(@f)$(_call_program names ${(q)program} completion ${1#@}s ${(q)place} 2>/dev/null)}")
        compadd -- "${(@)names:#}"
        ;;
    @file) _files ;;
    @folder) _files -/ ;;
    -) ;;
    *) compadd -- ${(s:|:)1} ;;
    esac
}

_daypack() {
    local -a options places actions place=(--uid=) commands=(
@COMMANDS@
    )
    local -A values=(--home @folder --agent @agent --uid -)
    local program=${(Q)words[1]} command='' action='' option='' word
    local -i at=1
    options=('--help:show the overview' '--version:show the version' '--home:root folder' '--agent:agent' '--uid:user folder')
    for word in "${(@Q)words[2,CURRENT-1]}"; do
        if [[ -n $option ]]; then
            case $option in --home | --agent | --uid) place+=("$option=$word") ;; esac
            option=''
            continue
        fi
        case $word in
        --home=* | --agent=* | --uid=*) place+=("$word") ;;
        --*=*) ;;
        -*) [[ -n ${values[$word]} ]] && option=$word ;;
        *)
            if [[ -z $command ]]; then
                command=$word
                _daypack_table "$command" || return 1
            elif (( $#actions )) && [[ -z $action ]]; then
                action=$word
                _daypack_table "$command $action" || return 1
            else
                (( at++ ))
            fi
            ;;
        esac
    done
    if (( at > $#places )) && [[ ${places[-1]} == *+ ]]; then
        at=$#places # an argument that can be repeated
    fi
    if [[ -n $option ]]; then
        _daypack_add_kind "${values[$option]}"
    elif [[ ${words[CURRENT]} == --*=* ]] && compset -P 1 '*='; then
        _daypack_add_kind "${values[${words[CURRENT]%%=*}]}"
    elif [[ ${words[CURRENT]} == -* ]]; then
        _describe -o option options
    elif [[ -z $command ]]; then
        _describe command commands
    elif (( $#actions )) && [[ -z $action ]]; then
        _describe action actions
    elif (( at <= $#places )); then
        _daypack_add_kind "${places[at]%+}"
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _daypack "$@"
else
    compdef _daypack daypack
fi
