#!/bin/sh
# A tutorial of mngr.
#
# Run these commands in a git repository that has a commit and no uncommitted changes; a new one with
# a single README is enough. They build on each other, so run them from top to bottom. The agents here are
# simple commands such as `sleep` and `cat`; any command can be an agent.
#
# To keep your own agents separate, use another home:
#   export MNGR_HOST_DIR="$HOME/mngr-tutorial"

# === First steps ===

# print the version of mngr
mngr --version

# see every command, with one line about each
mngr help

# read the manual of one command
mngr help create

# every command shows its manual with --help
mngr list --help

# if you mistype a command, mngr suggests the nearest one
mngr crate || echo "exit code $?"

# check that this machine has everything mngr requires
mngr doctor

# start your first agent: it gets its own branch, directory and terminal
mngr create fix --no-connect -- sleep 1000

# list all agents
mngr list

# it works in a git worktree, on the branch mngr/fix; your own files are left alone
git branch --list 'mngr/*'
git worktree list

# run something in its directory, and find the agent's commit in your repository
mngr exec fix 'echo hello > hello.txt; git add hello.txt; git commit -qm "Say hello"'
git log -1 --format=%s mngr/fix

# show the changes it has made
mngr diff fix

# stop it and keep its work; start it again in the same directory
mngr stop fix
mngr start fix

# merge its commits
mngr merge fix

# destroy it; restore brings it back, stopped
mngr destroy fix
mngr restore fix
mngr start fix

# === Creating agents ===

# without a name, mngr generates one
mngr create --no-connect -- sleep 1000

# everything after -- is run as is, without a shell; for pipes and variables, start a shell
mngr create greet --no-connect -- sh -c 'echo "hello from $MNGR_AGENT_NAME" | tr a-z A-Z'

# c is an alias of create
mngr c quick --no-connect -- true

# run it without a terminal: print its output, and return when it ends
mngr create hello --foreground -- echo 'hello, world'

# in the foreground, its exit code is the command's exit code
mngr create broken --foreground -- sh -c 'exit 3' || echo "exit code $?"

# names are unique
mngr create fix --no-connect -- sleep 1000 || echo "exit code $?"

# with --reuse, use the existing agent
mngr create server --reuse --no-connect -- sleep 1000
mngr create server --reuse --no-connect -- sleep 1000

# see what would happen, without doing it
mngr create maybe --dry-run -- sleep 1000

# add labels, to find it again
mngr create lint --no-connect --label team=core --label ticket=431 -- true

# set its project; the default is the name of the directory
mngr create home --no-connect --project website -- true

# limit its running time
mngr create brief --no-connect --timeout 1s -- sleep 1000
mngr wait brief FAILED --timeout 1m

# instead of attaching, run your own command with the agent's name
mngr create shown --connect-command 'echo "ready: $MNGR_AGENT_NAME"' -- sleep 1000

# choose its host; this machine is called localhost
mngr create near@localhost --no-connect -- sleep 1000

# for scripts, print the result as JSON
mngr create told --no-connect --format json -- true

# or print only the id
mngr create hush --no-connect --quiet -- true

# === What agents start with ===

# give it a variable
mngr create loud --foreground --env LEVEL=high -- sh -c 'echo "level $LEVEL"'

# give it the variables of a file
printf 'LEVEL=low\nCOLOR=green\n' > ~/levels.env
mngr create calm --foreground --env-file ~/levels.env -- \
  sh -c 'echo "level $LEVEL, $COLOR"'

# pass on a variable of your environment
COLOR=green mngr create painter --foreground --pass-env COLOR -- \
  sh -c 'echo "painting it $COLOR"'

# other variables are not passed on, so no token leaks by accident
TOKEN=secret mngr create outsider --foreground -- sh -c 'echo "token: ${TOKEN:-none}"'

# put a file into its directory before it starts
echo 'be kind' > ~/rules.txt
mngr create ruled --foreground --upload-file ~/rules.txt:rules.txt -- cat rules.txt

# run a command in its directory before it starts
mngr create built --foreground --provision-command 'mkdir build; date > build/when' -- ls build

# give it a first message; it is typed once the program runs
mngr create clerk --no-connect -m 'two apples' -- \
  sh -c 'while read line; do echo "noted: $line"; done'

# or take the message from a file
echo 'three pears' > ~/order.txt
mngr create grocer --no-connect --message-file ~/order.txt -- \
  sh -c 'read line; echo "order: $line"'

# open a second window with a shell command
mngr create site --no-connect -w log='echo "log begins"; exec sleep 1000' -- sleep 1000

# choose the size of its terminal
mngr create narrow --no-connect --tmux-width 60 --tmux-height 20 -- \
  sh -c 'stty size; exec sleep 1000'

# record its terminal from the start
mngr create film --no-connect --record -- echo 'action'

# === Where agents work ===

# mngr refuses to create an agent without your uncommitted changes, and lists them
echo draft > draft.txt
mngr create early --no-connect -- true || echo "exit code $?"

# copy them too
mngr create dirty --foreground --include-dirty -- cat draft.txt
rm draft.txt

# work on a copy instead of a worktree
mngr create copied --foreground --transfer copy -- git status --short --branch

# work on a clone that shares objects with one mirror per repository
mngr create mirrored --no-connect --transfer mirror -- sleep 1000
mngr exec mirrored 'git remote; git branch --show-current'

# work in place, in your own directory
mngr create inplace --foreground --transfer none -- pwd

# choose the name of its branch; * is the agent's name
mngr create bold --no-connect --branch ':try/*' -- sleep 1000
git branch --list 'try/*'

# options known from other tools: --source is --from, --include-unclean is --include-dirty
mngr create --name scout --source . --include-unclean --no-connect -- sleep 1000

# start at another commit
git tag v1
mngr create patch --no-connect --branch v1:hotfix -- sleep 1000

# work on a branch that exists
git branch existing
mngr create resume --foreground --branch existing -- git branch --show-current

# start from the work of another agent, with its uncommitted changes
mngr exec fix 'echo more > more.txt'
mngr create twin --foreground --from fix -- cat more.txt

# start from a directory that is not a repository: the agent works on a copy
mkdir -p ~/plain
echo text > ~/plain/file.txt
mngr create outside --foreground --from ~/plain -- ls

# start from a git URL
git clone -q --bare . ~/origin.git
mngr create fetched --foreground --from "file://$HOME/origin.git" -- git log -1 --format=%s

# print its work directory
mngr exec fix 'echo "$MNGR_AGENT_NAME works in $MNGR_AGENT_WORK_DIR"'

# === Listing ===

# show each agent's state and how long it has lasted, its commits and the lines they changed
mngr list fix server

# ls is an alias of list; choose the columns
mngr ls --fields name,state,state_reason,labels.team

# ps is an alias of list; --no-changes hides the column that requires git
mngr ps --no-changes

# show one agent in detail: state and reason, work, screen, and the commands to type next
mngr show fix

# status is an alias of show
mngr status fix

# print the path of its work directory
ls "$(mngr path fix)"

# for scripts, print one JSON document
mngr list --format json

# print the JSON schema of this document
mngr list --schema

# or one object per line
mngr list --format jsonl

# or a template for each line
mngr list --format '{name}\t{state}\t{host.name}'

# an unknown field is an error, and the nearest one is suggested
mngr list --format '{nane}' || echo "exit code $?"

# === Choosing what to list ===

# list running agents
mngr list --running

# list failed and stopped agents: state filters add up
mngr list --failed --stopped

# list agents of a type that are DONE or LOST
mngr list --type command --done --lost

# list all agents that are alive
mngr list --active

# filter by label, with a value or with any
mngr list --label team=core
mngr list --label ticket

# filter by a tag of the host; `create --host-label gpu=a100` tags a new host
mngr list --host-label gpu

# filter by project
mngr list --project website

# filter by an expression over the fields
mngr list --include 'state == "FAILED" && exit_code == 3'

# exclude agents that match an expression
mngr list --exclude 'state == "DONE"' --format '{name}'

# expressions can use text, numbers and times
mngr list --include 'name.startsWith("s") && runtime_seconds < 3600.0'

# sort them, and list only the first few
mngr list --sort name:desc --limit 3

# list the newest agent
mngr list --sort create_time:desc --limit 1 --format '{name}'

# print ids, one per line; unlike names they never change
mngr list --running --ids

# list only the agents named on standard input
printf 'fix\nserver\n' | mngr list --stdin

# show progress: commits made, commits missing, uncommitted files
mngr list --running --fields name,ahead,behind,dirty

# list hosts instead of agents
mngr list --hosts

# list agents on this machine, or on the hosts of one provider
mngr list --local --limit 2
mngr list --provider local --limit 2

# refresh the list until Ctrl-C
mngr list --watch 1

# another home has its own agents
MNGR_HOST_DIR=~/elsewhere mngr list

# === Talking to agents ===

# type a message into its terminal, and confirm that the program read it
mngr message clerk -m 'one melon'

# for scripts, print the outcome: delivered means that the program has read all of it
mngr msg clerk -m 'six eggs' --format '{outcome}'

# send standard input
git log -1 --format=%s | mngr message clerk

# send a file
echo 'a pound of flour' > ~/note.txt
mngr message clerk --message-file ~/note.txt

# send it to several agents
mngr create cook --no-connect -- cat
mngr message clerk cook -m 'dinner at eight'

# send it to all agents in a list
mngr list --include 'name in ["clerk", "cook"]' --ids |
  mngr message - -m 'dinner at nine'

# show what would be sent, without sending it
mngr message clerk -m 'never mind' --dry-run

# a stopped agent cannot read messages
mngr stop cook
mngr message cook -m 'are you there?' || echo "exit code $?"

# start it first
mngr message cook -m 'wake up' --start

# print its screen
mngr capture clerk

# every command also takes the agent's name as an option
mngr capture --agent clerk

# print the scrollback too, with colours
mngr capture clerk --full --ansi

# print another window
mngr capture site --window log

# print the last screen of an agent that has ended
mngr capture greet

# print all its output since it was created; -f follows it until it ends
mngr logs greet
mngr logs greet -f

# attach to it; C-b d detaches, and the agent keeps running
mngr connect clerk

# only watch, and do not start it if it has stopped
mngr connect clerk --read-only --no-start

# attach with your own command, for example in a new window; this one only prints it
mngr connect clerk --connect-command 'echo "$MNGR_CONNECT_ARGV"'

# the tmux server of the agents has separate settings: change its prefix key to C-a
echo 'set -g prefix C-a' > ~/.mngr/tmux.user.conf

# === Running commands beside agents ===

# show which files it has changed
mngr exec fix 'git status --short'

# x is an alias of exec; everything after -- is run as is, without a shell
mngr x fix -- echo 'no $SHELL here'

# the exit code is the command's own
mngr exec fix 'exit 7' || echo "exit code $?"

# pass standard input
echo 'print(6 * 7)' | mngr exec -i fix python3

# run in a subdirectory
mngr exec fix 'mkdir -p docs'
mngr exec fix --cwd docs 'basename "$PWD"'

# limit the time
mngr exec fix --timeout 1s 'sleep 60' || echo "exit code $?"

# print output as it is produced
mngr exec fix --stream 'for n in 1 2 3; do echo "step $n"; done'

# run on several agents, and print one JSON document
mngr exec fix server 'git rev-parse --abbrev-ref HEAD' --format json

# run on all agents in a list
mngr list --running --format '{name}' | mngr exec - 'git log -1 --format=%s'

# run on one agent after the other, until one fails
mngr exec fix server --on-error abort 'test -e hello.txt' || echo "exit code $?"

# the agent need not be running, but it can be started first
mngr stop server
mngr exec server --start 'echo "$MNGR_AGENT_NAME is up"'

# === Waiting and watching ===

# wait until an agent has ended, or waits for input
mngr create task --no-connect -- sh -c 'sleep 0.2; echo finished'
mngr wait task

# wait for one state with a timeout: exit code 124
mngr wait fix DONE --timeout 1s || echo "exit code $?"

# wait for the first of several
mngr wait --any fix task --timeout 1m

# wait for all agents with a label, and format the result
mngr list --label team=core --ids | mngr wait - --format '{name} {state}'

# wait for an agent that does not exist: exit code 4
mngr wait nobody || echo "exit code $?"

# print its events
mngr event task

# print how it ended
mngr event task --include 'type == "agent_exited"' --tail 1

# print only the first event, for a script
mngr event task --head 1 --format '{type}'

# print only the events from one source
mngr event task launcher

# follow its events until Ctrl-C
mngr event fix --follow --format jsonl

# watch all agents: a line of JSON for each, and one for each change
mngr observe

# print only agents that appear and disappear, with a template
mngr observe --discovery-only --format '{agent.name} {agent.state}'

# === Conversations, cost and limits ===

# give an agent one hour; at the limit it is stopped, and its work is kept
mngr create slow --no-connect --timeout 1h -- sleep 1000

# print its limits
mngr limit slow

# change a limit while it runs: one second has passed already, so it is stopped, with the reason
mngr limit slow --timeout 1s
mngr wait slow FAILED --timeout 1m

# remove the limit, and start it again
mngr limit slow --timeout none
mngr start slow

# limits on dollars and tokens require a coding agent, which reports its usage
mngr limit slow --max-cost 5 --max-tokens 2M || echo "exit code $?"

# show the usage so far, in total or by ticket; no agent here uses a model, so it is zero
mngr usage
mngr usage --by label:ticket

# show the cost and the idle time of each agent
mngr list --fields name,state,idle,tokens,cost

# set your own prices: dollars per million tokens, by the prefix of the model's name
mngr config set prices.my-model.input 0.5
mngr config set prices.my-model.output 2

# list permission requests
mngr answer --all-pending

# answer a request with `mngr answer slow --allow`; this agent has none
mngr answer slow || echo "exit code $?"

# print the conversation of a coding agent; a plain command has none
mngr transcript slow || echo "exit code $?"

# send a message and wait for the reply; again, that requires an agent that replies
mngr message slow -m 'how is it going?' --wait --timeout 10m || echo "exit code $?"

# === Stopping, starting, renaming ===

# s is an alias of stop; stopping a stopped agent is not an error
mngr s server
mngr stop server

# start it, and wait until it is running
mngr start server
mngr wait server RUNNING --timeout 1m

# stop it and start it again: a new process with the same command and directory
mngr restart server

# kill its program immediately
mngr kill server
mngr start server

# show what would be stopped
mngr stop --all --dry-run

# stop all agents in a list
mngr list --include 'name in ["near", "shown"]' --ids | mngr stop -

# archive an agent: it is stopped and hidden from lists
mngr archive near
mngr list --archived

# starting it shows it again
mngr start near
mngr stop near --archive

# rename it, even while it is running; its id and branch stay the same
mngr rename server web

# set labels later
mngr label web team=core since=today

# print the labels, and remove one
mngr label web
mngr label web --remove since

# label several agents
mngr list --running --ids | mngr label - seen=yes

# === Destroying and restoring ===

# mngr asks before it destroys work that exists nowhere else; without a terminal it refuses
mngr exec web 'echo precious > found.txt'
mngr destroy web --headless || echo "exit code $?"

# skip the question
mngr destroy web --force

# list the trash
mngr restore --list

# restore it with all files, optionally under another name
mngr restore web --as web2
mngr exec web2 'cat found.txt'

# remove the branch too
mngr destroy web2 --force --remove-created-branch

# `n` on standard input keeps a running agent
echo n | mngr destroy fix || echo "exit code $?"

# rm is an alias of destroy; destroy all agents that are DONE
mngr list --include 'state == "DONE"' --ids | mngr rm - --force --quiet

# show what would be destroyed
mngr destroy fix --force --dry-run

# delete agents that were destroyed long ago
mngr restore --purge --older-than 30d --force

# delete one agent for good
mngr restore hello --purge --force

# list leftovers, then remove them
mngr gc --dry-run
mngr gc

# empty the whole trash now
mngr gc -S trash.keep=0s

# === Moving work ===

# show what it has committed, and what it has not
mngr exec fix 'echo one > one.txt; git add one.txt; git commit -qm "Add one"'
mngr exec fix 'echo two > two.txt'
mngr diff fix --commits
mngr diff fix --uncommitted

# summarise the changes, or limit them to some files
mngr diff fix --stat
mngr diff fix -- one.txt

# the output is a patch; check that it applies here
mngr diff fix -- two.txt | git apply --check

# fetch the commits of an agent that works on a clone
mngr exec mirrored 'echo far > far.txt; git add far.txt; git commit -qm "From afar"'
mngr pull mirrored
git log -1 --format=%s mngr/mirrored

# fetch them under another name
mngr pull mirrored --branch review/mirrored

# copy a file from its work directory, committed or not
mngr pull fix two.txt ~/two.txt
cat ~/two.txt

# files that differ are replaced only with --force
echo mine > ~/two.txt
mngr pull fix two.txt ~/two.txt || echo "exit code $?"
mngr pull fix two.txt ~/two.txt --force

# copy a file to its work directory
mngr push bold ~/note.txt note.txt
mngr exec bold 'cat note.txt'

# push your new commits: only a fast-forward, so its work cannot be lost
git commit -q --allow-empty -m 'Progress'
mngr push patch

# === Merging, cloning, snapshots ===

# show what would be merged, then merge
mngr merge fix --dry-run
mngr merge fix

# merge it as one commit, and only if a check passes
mngr merge mirrored --squash --check 'test -e far.txt'

# if the check fails, the merge is undone
mngr exec bold 'echo bad > bad.txt; git add bad.txt; git commit -qm "Add bad"'
mngr merge bold --check 'test ! -e bad.txt' || echo "exit code $?"

# create another agent with the same program and the same work
mngr clone fix
mngr clone fix other --label attempt=2 -- sleep 500

# take a snapshot of its work directory
mngr snapshot create fix --name before

# change it, and restore the snapshot; the current state is saved as another snapshot first
mngr exec fix 'rm two.txt; echo oops > one.txt'
mngr snapshot restore fix before
mngr exec fix 'cat one.txt two.txt'

# list its snapshots, and delete one
mngr snapshot list fix
mngr snap destroy fix 2

# create an agent from a snapshot
mngr create retry --foreground --from fix/before -- cat two.txt

# move it to another host; here there is only one, so this fails
mngr migrate fix localhost || echo "exit code $?"

# === Many at once ===

# write one line of JSON per agent; each result is one line too
echo '{"name": "unit", "args": ["true"]}' > ~/jobs.jsonl
echo '{"name": "types", "args": ["false"]}' >> ~/jobs.jsonl
mngr create --batch ~/jobs.jsonl --label run=nightly

# wait for all of them, with exit code 1 if one failed; list the failed ones
mngr list --label run=nightly --ids | mngr wait - --timeout 5m || echo "exit code $?"
mngr list --label run=nightly --failed --format '{name}: exit code {exit_code}'

# start them again
mngr list --label run=nightly --failed --ids | mngr start -

# read from a pipe, create two at a time; options apply to all lines
for n in 1 2 3; do echo "{\"name\": \"part$n\"}"; done |
  mngr create --batch - --max-parallel 2 -- sleep 1000

# an invalid line is reported, and the other agents are created: exit code 3
printf '%s\n' '{"name": "good", "args": ["true"]}' '{"nome": "bad"}' |
  mngr create --batch - || echo "exit code $?"

# stop a whole batch
mngr list --include 'name.startsWith("part")' --ids | mngr stop - --quiet

# === Settings ===

# list every setting, and where its value comes from
mngr config list --origin

# print one, change it, and reset it to the default
mngr config get trash.keep
mngr config set trash.keep 30d
mngr config unset trash.keep

# set it for one command only, with a variable or with -S
MNGR__TRASH__KEEP=1d mngr config get trash.keep
mngr -S trash.keep=2h config get trash.keep

# a setting that does not exist is an error
mngr config set trash.kep 1d || echo "exit code $?"

# an unknown setting in a file or variable is only a warning; doctor lists them
MNGR__TRASH__KEP=1d mngr list
MNGR__TRASH__KEP=1d mngr doctor || echo "exit code $?"

# never prompt, as with --headless: in this shell, or permanently
export MNGR_HEADLESS=1
mngr config set headless true

# settings of this project: once it has a directory .mngr, config set writes there
mkdir .mngr
mngr config set trash.keep 30d
mngr create keeper -- sleep 1000

# give an option a default: from now on, create does not attach
mngr config set commands.create.connect false

# print the paths of the settings files: user, project and local
mngr config path --scope user
mngr config path --scope project
mngr config path --scope local

# open your settings in an editor; they are checked when you close it
EDITOR=true mngr config edit

# a template is a set of options for create
mngr config set create_templates.review.branch ':review/*'
mngr config set create_templates.review.label '["role=review"]'
mngr create check --template review -- true

# an agent type is a program with a name; derive one from another
mngr config set agent_types.napper.command 'sleep 1000'
mngr create nap napper

# === Tutorials that are tests ===

# a tutorial such as this one can be tested, block by block; start with a small one
mkdir -p ~/greet/tests
printf '%s\n' '# say hello' 'echo hello' '' '# say it loudly' > ~/greet/tutorial.sh

# list the blocks without a test
(cd ~/greet && mngr tutorial check) || echo "exit code $?"

# show which tests would be written, then write them; add further checks yourself
(cd ~/greet && mngr tutorial scaffold --dry-run)
(cd ~/greet && mngr tutorial scaffold)

# check that the tutorial and its tests agree
(cd ~/greet && mngr tutorial check --no-results)

# install a slash command for Claude Code that writes such tests
(cd ~/greet && mngr tutorial install-commands)

# let an agent propose commands for comments; this prints its prompt
(cd ~/greet && mngr tutorial fill --dry-run)

# let an agent write the missing tests; here, there is nothing to do
(cd ~/greet && mngr tutorial sync --dry-run)

# === A hundred agents, one branch ===

# create a project with a bug, and a test that fails because of it
mkdir -p ~/shop/tests
printf '%s\n' 'def total(prices):' '    amount = 0' '    for price in prices:' \
  '        amount -= price' '    return amount' > ~/shop/shop.py
printf '%s\n' 'from shop import total' '' 'def test_total():' \
  '    assert total([2, 3]) == 5' > ~/shop/tests/test_shop.py
(cd ~/shop && git init -q -b main && git add -A)
(cd ~/shop && git config user.name Me && git config user.email me@example.com)
(cd ~/shop && git commit -qm 'Open the shop')

# list the agents that a run would start; this runs the tests, and starts none
(cd ~/shop && mngr tmr run --type mechanic --only failing --dry-run)

# start one agent per failing test (mechanic requires no account), and build one branch
(cd ~/shop && mngr tmr run --name shop --type mechanic --only failing --yes)
mngr tmr show shop
git -C ~/shop log --oneline main..tmr/shop
mngr tmr report shop --out ~/report

# list the runs
mngr tmr list --format '{run} {status}'

# read about the demo, which does the same on a larger example in a minute or two
mngr help demo

# === Plugins, completion, manuals ===

# list the plugins, and what they add
mngr plugin list

# a plugin is a Python module that adds commands or agent types; name it in the settings
mkdir -p ~/plugins
echo 'def register(to): to.agent_type("parrot", "mngr.agents.base:AgentType")' \
  > ~/plugins/parrot.py
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin list

# disable it, and enable it again
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin disable parrot
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin enable parrot

# complete commands, options and names in bash, zsh or fish
mngr completion bash

# read a manual page
mngr man create

# print the names of all commands, for a script
mngr help --format '{name}'

# list problems of this machine, then repair them
mngr doctor --format '{status} {detail}'
mngr doctor --fix

# at the end, destroy all agents; their work stays in the trash for two weeks
mngr list --ids | mngr destroy - --force
