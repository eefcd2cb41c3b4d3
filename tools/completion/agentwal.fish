# Made by tools/agentwal/make_documents.py from the help of the verbs.

# The program with the store of the command line.
function __agentwal_call
    set -l store
    set -l words (commandline -opc)
    for i in (seq (count $words))
        switch $words[$i]
            case '--store=*'
                set store $words[$i]
            case --store
                set -l next (math $i + 1)
                set store --store=$words[$next]
        end
    end
    command agentwal $store $argv 2>/dev/null
end

function __agentwal_sessions
    echo @latest
    __agentwal_call list --json --limit 1000 |
        string replace -rf '^\{"sessionId":"([^"\\\\]*)".*' '$1'
end

function __agentwal_dialects
    __agentwal_call dialects --json | string replace -rf '^\{"name":"([a-z0-9]*)".*' '$1'
end

complete -c agentwal -f
complete -c agentwal -n __fish_use_subcommand -a import -d 'Import session files, or all session files below directories'
complete -c agentwal -n __fish_use_subcommand -a adopt -d 'Find the clients of this user, and import their sessions'
complete -c agentwal -n __fish_use_subcommand -a export -d 'Write sessions as the files of a client'
complete -c agentwal -n __fish_use_subcommand -a follow -d 'Keep the files of a client current until interrupted'
complete -c agentwal -n __fish_use_subcommand -a path -d 'Print the path of a session\'s file below a directory'
complete -c agentwal -n __fish_use_subcommand -a dialects -d 'List the formats that can be imported and exported'
complete -c agentwal -n __fish_use_subcommand -a list -d 'List the sessions, newest first'
complete -c agentwal -n __fish_use_subcommand -a show -d 'Show the details of a session'
complete -c agentwal -n __fish_use_subcommand -a tree -d 'Draw the branches of a session, with its heads'
complete -c agentwal -n __fish_use_subcommand -a cat -d 'Print the entries of a session, one JSON object per line'
complete -c agentwal -n __fish_use_subcommand -a latest -d 'Print the id of the newest session'
complete -c agentwal -n __fish_use_subcommand -a children -d 'List the forks of a session'
complete -c agentwal -n __fish_use_subcommand -a projects -d 'List the projects of the sessions'
complete -c agentwal -n __fish_use_subcommand -a project -d 'Print the project id of a directory'
complete -c agentwal -n __fish_use_subcommand -a stats -d 'Show the counts and sizes of the store and its sessions'
complete -c agentwal -n __fish_use_subcommand -a search -d 'Search the text of all sessions'
complete -c agentwal -n __fish_use_subcommand -a usage -d 'Add up the tokens and costs of the sessions'
complete -c agentwal -n __fish_use_subcommand -a watch -d 'Watch what is appended to all sessions, until interrupted'
complete -c agentwal -n __fish_use_subcommand -a resume -d 'Print the command that continues a session, or bring one here'
complete -c agentwal -n __fish_use_subcommand -a serve -d 'Answer programs and browsers over HTTP'
complete -c agentwal -n __fish_use_subcommand -a view -d 'Write a session as one HTML file, to read and to share'
complete -c agentwal -n __fish_use_subcommand -a create -d 'Create a session and print its id'
complete -c agentwal -n __fish_use_subcommand -a append -d 'Append entries from standard input, one JSON object per line'
complete -c agentwal -n __fish_use_subcommand -a fork -d 'Create a session that shares the beginning of another one, and print its id'
complete -c agentwal -n __fish_use_subcommand -a title -d 'Give a session another title'
complete -c agentwal -n __fish_use_subcommand -a head -d 'List, show or move the heads of a session'
complete -c agentwal -n __fish_use_subcommand -a meta -d 'Print the metadata of a session, after applying a merge patch'
complete -c agentwal -n __fish_use_subcommand -a doc -d 'Keep JSON documents with a session, or with the store'
complete -c agentwal -n __fish_use_subcommand -a compact-session -d 'Replace the entries before an entry by a summary from standard input'
complete -c agentwal -n __fish_use_subcommand -a redact -d 'Hide the content of an entry'
complete -c agentwal -n __fish_use_subcommand -a delete -d 'Move sessions to the trash'
complete -c agentwal -n __fish_use_subcommand -a undelete -d 'Take sessions out of the trash'
complete -c agentwal -n __fish_use_subcommand -a pin -d 'Keep a session whatever the rules of retain say'
complete -c agentwal -n __fish_use_subcommand -a checkpoint -d 'Record the state of files, including that one does not exist'
complete -c agentwal -n __fish_use_subcommand -a checkpoints -d 'List the checkpoints of a session'
complete -c agentwal -n __fish_use_subcommand -a checkpoint-show -d 'List the files of a checkpoint'
complete -c agentwal -n __fish_use_subcommand -a checkpoint-diff -d 'Show the changes from a checkpoint to another one, or to the files on disk'
complete -c agentwal -n __fish_use_subcommand -a checkpoint-delete -d 'Delete a checkpoint'
complete -c agentwal -n __fish_use_subcommand -a checkpoint-export -d 'Write the checkpoints of a session as manifests and contents'
complete -c agentwal -n __fish_use_subcommand -a checkpoint-import -d 'Read checkpoints that were written as files, in either layout'
complete -c agentwal -n __fish_use_subcommand -a checkpointing -d 'Turn checkpoints of a session on or off'
complete -c agentwal -n __fish_use_subcommand -a rewind -d 'Restore files from a checkpoint, all or none'
complete -c agentwal -n __fish_use_subcommand -a init -d 'Create a store'
complete -c agentwal -n __fish_use_subcommand -a check -d 'Read everything in the store and report the damage'
complete -c agentwal -n __fish_use_subcommand -a salvage -d 'Build a sound store in OUT from everything that can be read'
complete -c agentwal -n __fish_use_subcommand -a migrate -d 'Convert the store, or a session, to this version'
complete -c agentwal -n __fish_use_subcommand -a accept-damage -d 'Allow appends to sessions that lost entries'
complete -c agentwal -n __fish_use_subcommand -a gc -d 'Give back the space of what is dead, and compress the rest'
complete -c agentwal -n __fish_use_subcommand -a backup -d 'Copy the store to DIR, and later only what is new'
complete -c agentwal -n __fish_use_subcommand -a bundle -d 'Write sessions to one file, with everything they have'
complete -c agentwal -n __fish_use_subcommand -a merge -d 'Take all sessions of another store into this one'
complete -c agentwal -n __fish_use_subcommand -a index -d 'Bring the index of search up to date'
complete -c agentwal -n __fish_use_subcommand -a secrets -d 'List the known forms of secrets in the store, or redact their entries'
complete -c agentwal -n __fish_use_subcommand -a retain -d 'Move old sessions to the trash, by rules'
complete -c agentwal -n __fish_use_subcommand -a remote -d 'Keep the store in a bucket too, and bring it to other machines'
complete -c agentwal -n __fish_use_subcommand -a restore -d 'Take sessions back from an archive of retain'
complete -c agentwal -n __fish_use_subcommand -a help -d 'Show the verbs, or how to use one'
complete -c agentwal -l store -x -a '(__fish_complete_directories)' -d 'the store; else AGENTWAL_STORE, else $XDG_DATA_HOME/agentwal (~/.local/share/agentwal)'
complete -c agentwal -l json -d 'results and errors as JSON'
complete -c agentwal -l no-color -d 'no colours; also with NO_COLOR in the environment'
complete -c agentwal -l no-pager -d 'no pager on a terminal; it is PAGER, else less'
complete -c agentwal -l no-progress -d 'no progress on standard error'
complete -c agentwal -l strict -d 'refuse what recovery cannot decide'
complete -c agentwal -l force-network-fs -d 'accept a store on a network file system'
complete -c agentwal -l help -d 'print this help or the version, and exit'
complete -c agentwal -l version -d 'print this help or the version, and exit'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l dialect -x -a '(__agentwal_dialects)' -d 'the format of the files; auto recognises it'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l all-files -d 'import every file below a directory'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l follow -d 'then import what changes, until interrupted'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l summary -d 'with --json: a last object {"summary":...}'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l redact-secrets -d 'then redact what is new and has a known secret'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l rules -x -d 'more forms of secrets: docs/secrets.md'
complete -c agentwal -n '__fish_seen_subcommand_from import' -s v -d 'print every source and every warning'
complete -c agentwal -n '__fish_seen_subcommand_from import' -l verbose -d 'print every source and every warning'
complete -c agentwal -n '__fish_seen_subcommand_from import' -F
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -s y -d 'do not ask'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -l yes -d 'do not ask'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -l install -d 'then follow the folders by a systemd user unit, from each login on'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -l uninstall -d 'stop and remove that unit; import nothing'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -s v -d 'print every source and every warning'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -l verbose -d 'print every source and every warning'
complete -c agentwal -n '__fish_seen_subcommand_from adopt' -F
complete -c agentwal -n '__fish_seen_subcommand_from export' -l dialect -x -a '(__agentwal_dialects)' -d 'the imported files, byte for byte'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l dialect -x -a '(__agentwal_dialects)' -d 'the format of a client (see agentwal dialects)'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l session -x -a '(__agentwal_sessions)' -d 'only this session; may be repeated'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l stdout -d 'one session to standard output'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l no-secrets -d 'known forms of secrets are replaced, and counted'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l rules -x -d 'more forms of secrets: docs/secrets.md'
complete -c agentwal -n '__fish_seen_subcommand_from export' -s v -d 'print each file'
complete -c agentwal -n '__fish_seen_subcommand_from export' -l verbose -d 'print each file'
complete -c agentwal -n '__fish_seen_subcommand_from export' -F
complete -c agentwal -n '__fish_seen_subcommand_from follow' -l dialect -x -a '(__agentwal_dialects)' -d 'the format of the client (see agentwal dialects)'
complete -c agentwal -n '__fish_seen_subcommand_from follow' -F
complete -c agentwal -n '__fish_seen_subcommand_from path' -l dialect -x -a '(__agentwal_dialects)' -d 'the format of the file'
complete -c agentwal -n '__fish_seen_subcommand_from path' -l stream -x -d 'of another stream than the conversation, which is 0'
complete -c agentwal -n '__fish_seen_subcommand_from path' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from path' -F
complete -c agentwal -n '__fish_seen_subcommand_from list' -l cwd -x -a '(__fish_complete_directories)' -d 'only sessions of this directory'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l project -x -d 'only sessions of this project'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l client -x -d 'only sessions of this client, such as claude or codex'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l title -x -d 'only sessions with the text in the title or first message'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l since -x -d 'only what changed since 2026-11-20, or an age: 12h, 7d, 2w'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l trash -d 'the sessions in the trash, instead of all others'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l subagents -d 'with those that do a part of another one\'s work'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l limit -x -d 'at most N sessions; 0: all'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l cursor -d 'print the cursor of the next page on standard error'
complete -c agentwal -n '__fish_seen_subcommand_from list' -l after -x -d 'continue after a page'
complete -c agentwal -n '__fish_seen_subcommand_from show' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from show' -F
complete -c agentwal -n '__fish_seen_subcommand_from tree' -l all -d 'all branches in log order'
complete -c agentwal -n '__fish_seen_subcommand_from tree' -l stream -x -d 'another stream than the conversation, which is 0'
complete -c agentwal -n '__fish_seen_subcommand_from tree' -l deltas -d 'with entries of type message_delta_batch'
complete -c agentwal -n '__fish_seen_subcommand_from tree' -l redacted -d 'with redacted entries'
complete -c agentwal -n '__fish_seen_subcommand_from tree' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from tree' -F
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l text -d 'a readable conversation'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l branch -x -d 'the branch of that entry or head instead of the live one'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l up-to -x -d 'the branch, ending with that entry'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l since-compaction -d 'from the first entry kept at the last compaction'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l all -d 'all branches, in log order'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l stream -x -d 'another stream than the conversation, which is 0'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l type -x -d 'only entries of that type'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l tail -x -d 'only the last N; 0: none'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l deltas -d 'with entries of type message_delta_batch'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l redacted -d 'with redacted entries'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l tree -d 'a drawing of the branches and heads'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l follow -d 'print new entries until interrupted; without a SESSION, those of all sessions'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -l frames -d 'every frame of the store, or of a segment file'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from cat' -F
complete -c agentwal -n '__fish_seen_subcommand_from latest' -l cwd -x -a '(__fish_complete_directories)' -d 'the newest of this directory'
complete -c agentwal -n '__fish_seen_subcommand_from children' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from children' -F
complete -c agentwal -n '__fish_seen_subcommand_from project' -F
complete -c agentwal -n '__fish_seen_subcommand_from search' -l project -x -d 'sessions of that project'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l cwd -x -a '(__fish_complete_directories)' -d 'sessions of that directory'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l session -x -a '(__agentwal_sessions)' -d 'one session'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l since -x -d 'from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l until -x -d 'before that time'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l role -x -d 'user, assistant, tool, title, summary or result; may be repeated'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l tool -x -d 'calls of that tool; without a word, all of them'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l deep -d 'the results of tools too'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l substring -d 'the text, inside words too'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l secrets -d 'known forms of secrets instead of words; see agentwal secrets'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l limit -x -d 'at most N sessions; otherwise 20'
complete -c agentwal -n '__fish_seen_subcommand_from search' -l around -x -d 'print N entries before and after each hit'
complete -c agentwal -n '__fish_seen_subcommand_from search' -F
complete -c agentwal -n '__fish_seen_subcommand_from usage' -l by -x -d 'day (the default), model, project, client or session'
complete -c agentwal -n '__fish_seen_subcommand_from usage' -l since -x -d 'from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w'
complete -c agentwal -n '__fish_seen_subcommand_from usage' -l until -x -d 'before that time'
complete -c agentwal -n '__fish_seen_subcommand_from usage' -l prices -x -d 'list prices, in the form of LiteLLM, instead of the built-in ones'
complete -c agentwal -n '__fish_seen_subcommand_from usage' -F
complete -c agentwal -n '__fish_seen_subcommand_from watch' -l session -x -a '(__agentwal_sessions)' -d 'only this one; several times: only these'
complete -c agentwal -n '__fish_seen_subcommand_from watch' -l project -x -d 'only sessions of this project'
complete -c agentwal -n '__fish_seen_subcommand_from watch' -l cwd -x -a '(__fish_complete_directories)' -d 'only sessions of this directory'
complete -c agentwal -n '__fish_seen_subcommand_from watch' -l since -x -d 'begin with entries from 2026-11-20, 2026-11-20T14:03, or an age: 10m, 12h, 7d'
complete -c agentwal -n '__fish_seen_subcommand_from watch' -l plain -d 'lines on a terminal too'
complete -c agentwal -n '__fish_seen_subcommand_from watch' -F
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l in -x -d 'continue in claude, codex, pi, gemini, copilot, qwen or kimi'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l run -d 'run the command instead of printing it'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l project -x -d 'only sessions of this project'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l cwd -x -a '(__fish_complete_directories)' -d 'only sessions of this directory'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l limit -x -d 'of the table: at most N sessions; 0: all; else 20'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l remote -x -d 'bring the session from a store in this bucket'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l store-id -x -d 'of that store, where the bucket has several'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l take-over -d 'also when it is at a machine that is not in the bucket'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -l take-back -d 'go on with a session that has moved away'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from resume' -F
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l open -d 'open the page in the browser'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l port -x -d 'listen on port N of 127.0.0.1 and ::1; otherwise a free one'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l token-file -x -d 'write a token for programs there'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l socket -x -d 'listen on that Unix socket, not on a port'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l write -d 'allow changes'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l connections -x -d 'at most N connections; otherwise 256'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l idle -x -d 'close a connection that is idle for so long; otherwise 60'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l link-time -x -d 'how long the link may be opened; otherwise 600'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -l prices -x -d 'list prices, in the form of LiteLLM, instead of the built-in ones'
complete -c agentwal -n '__fish_seen_subcommand_from serve' -F
complete -c agentwal -n '__fish_seen_subcommand_from view' -l redact -x -d 'hide what matches this extended regular expression, too; may be repeated'
complete -c agentwal -n '__fish_seen_subcommand_from view' -l rules -x -d 'more forms of secrets: docs/secrets.md'
complete -c agentwal -n '__fish_seen_subcommand_from view' -l no-tool-results -d 'leave the results of tools out'
complete -c agentwal -n '__fish_seen_subcommand_from view' -l no-paths -d 'shorten absolute paths to their last name, or to what is below the session\'s directory'
complete -c agentwal -n '__fish_seen_subcommand_from view' -l prices -x -d 'list prices, in the form of LiteLLM, instead of the built-in ones'
complete -c agentwal -n '__fish_seen_subcommand_from view' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from view' -F
complete -c agentwal -n '__fish_seen_subcommand_from create' -l id -x -d 'its id; a new UUID without it'
complete -c agentwal -n '__fish_seen_subcommand_from create' -l cwd -x -a '(__fish_complete_directories)' -d 'its directory; the current one without it'
complete -c agentwal -n '__fish_seen_subcommand_from create' -l project -x -d 'its project; that of its directory without it'
complete -c agentwal -n '__fish_seen_subcommand_from create' -l title -x -d 'its title'
complete -c agentwal -n '__fish_seen_subcommand_from create' -l meta -x -d 'its metadata, a JSON object'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l create -d 'create the session if it does not exist'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l user -x -d 'a message of the user, instead of standard input'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l each -d 'one append and one result per line, instead of one atomic batch'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l expect-tail -x -d 'refuse if the last entry is another one'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l stream -x -d 'another stream than the conversation, which is 0'
complete -c agentwal -n '__fish_seen_subcommand_from append' -l durability -x -d 'durable (default), written, queued or cluster: in the remote too, by agentwal remote push --follow'
complete -c agentwal -n '__fish_seen_subcommand_from append' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from append' -F
complete -c agentwal -n '__fish_seen_subcommand_from fork' -l at -x -d 'the last shared entry; the head without it'
complete -c agentwal -n '__fish_seen_subcommand_from fork' -l id -x -d 'the id of the new session'
complete -c agentwal -n '__fish_seen_subcommand_from fork' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from fork' -F
complete -c agentwal -n '__fish_seen_subcommand_from title' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from title' -F
complete -c agentwal -n '__fish_seen_subcommand_from head' -l stream -x -d 'of another stream than the conversation, which is 0'
complete -c agentwal -n '__fish_seen_subcommand_from head' -l expect -x -d 'move only if the head is at this entry'
complete -c agentwal -n '__fish_seen_subcommand_from head' -l note -x -d 'a note to keep with the move'
complete -c agentwal -n '__fish_seen_subcommand_from head' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from head' -F
complete -c agentwal -n '__fish_seen_subcommand_from meta' -l merge -x -d 'a merge patch (RFC 7386)'
complete -c agentwal -n '__fish_seen_subcommand_from meta' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from meta' -F
complete -c agentwal -n '__fish_seen_subcommand_from doc' -l store -d 'documents of the store instead of a session; the directory of the store is then given as --store=DIR or before the verb'
complete -c agentwal -n '__fish_seen_subcommand_from doc' -l if-version -x -d 'put and delete: only if this is the current version'
complete -c agentwal -n '__fish_seen_subcommand_from doc' -l at -x -d 'get: the value of that version'
complete -c agentwal -n '__fish_seen_subcommand_from doc' -l history -d 'scan: with former versions and deletions'
complete -c agentwal -n '__fish_seen_subcommand_from doc' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from doc' -a 'put get delete list scan'
complete -c agentwal -n '__fish_seen_subcommand_from compact-session' -l first-kept -x -d 'the first entry that is kept'
complete -c agentwal -n '__fish_seen_subcommand_from compact-session' -l new -x -d 'fork first: the id of the new session'
complete -c agentwal -n '__fish_seen_subcommand_from compact-session' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from compact-session' -F
complete -c agentwal -n '__fish_seen_subcommand_from redact' -l undo -d 'show the content again, unless it was erased'
complete -c agentwal -n '__fish_seen_subcommand_from redact' -l reason -x -d 'why; shown in its place'
complete -c agentwal -n '__fish_seen_subcommand_from redact' -l erase -d 'leave no byte of it in any file of the store'
complete -c agentwal -n '__fish_seen_subcommand_from redact' -l views -d 'with --erase: rewrite the views that the store knows of and that may hold it'
complete -c agentwal -n '__fish_seen_subcommand_from redact' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from redact' -F
complete -c agentwal -n '__fish_seen_subcommand_from delete' -l erase -d 'delete them for good, and leave no byte of them in any file of the store, but what forks see'
complete -c agentwal -n '__fish_seen_subcommand_from delete' -l views -d 'with --erase: remove their views that the store knows of'
complete -c agentwal -n '__fish_seen_subcommand_from delete' -F
complete -c agentwal -n '__fish_seen_subcommand_from undelete' -F
complete -c agentwal -n '__fish_seen_subcommand_from pin' -l off -d 'unpin'
complete -c agentwal -n '__fish_seen_subcommand_from pin' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from pin' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -l root -x -a '(__fish_complete_directories)' -d 'the directory of the files; that of the session without it'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -l files-from -r -F -d 'read names from FILE, or with - from standard input'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -s 0 -d 'the names end with a zero byte'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -l null -d 'the names end with a zero byte'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -l all-or-none -d 'record no file when one cannot be recorded'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoints' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoints' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-show' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-show' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-diff' -s p -d 'the changed lines, as git does'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-diff' -l patch -d 'the changed lines, as git does'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-diff' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-diff' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-delete' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-delete' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-export' -l layout -x -d 'sdk or spec11: the names and manifests of the files'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-export' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-export' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-import' -l root -x -a '(__fish_complete_directories)' -d 'the directory of the files; that of the session without it'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-import' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpoint-import' -F
complete -c agentwal -n '__fish_seen_subcommand_from checkpointing' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from checkpointing' -F
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l to -x -d 'move the conversation to ENTRY, and the files to the checkpoint that belongs to it'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l head -d 'move the conversation to the entry of the checkpoint too'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l root -x -a '(__fish_complete_directories)' -d 'the directory of the files'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l dry-run -d 'report what would change'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l expect -x -d 'refuse if files changed since this checkpoint'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -l force -d 'rewind although files changed'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from rewind' -F
complete -c agentwal -n '__fish_seen_subcommand_from check' -l jobs -x -d 'read with N threads; one per processor without it'
complete -c agentwal -n '__fish_seen_subcommand_from check' -l remote -x -d 'read what the remote, or that of the store, has instead'
complete -c agentwal -n '__fish_seen_subcommand_from check' -l store-id -x -d '--remote: which store, if the remote has several'
complete -c agentwal -n '__fish_seen_subcommand_from check' -F
complete -c agentwal -n '__fish_seen_subcommand_from salvage' -l jobs -x -d 'read with N threads; one per processor without it'
complete -c agentwal -n '__fish_seen_subcommand_from salvage' -F
complete -c agentwal -n '__fish_seen_subcommand_from migrate' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from migrate' -F
complete -c agentwal -n '__fish_seen_subcommand_from accept-damage' -a '(__agentwal_sessions)'
complete -c agentwal -n '__fish_seen_subcommand_from accept-damage' -F
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l dry-run -d 'change nothing; show what would come back, per session and in total'
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l erase -d 'delete what is in the trash, and leave no byte of what was deleted or redacted in the log; list the views that may hold it'
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l views -d 'rewrite the views that the store knows of and that may hold what was deleted or redacted'
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l keep-deltas -d 'keep the deltas of messages that are complete; not with --erase'
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l max-bytes -x -d 'rewrite at most SIZE of segments'
complete -c agentwal -n '__fish_seen_subcommand_from gc' -l rate -x -d 'read and write at most SIZE in a second; 0: no limit; 64MiB without it'
complete -c agentwal -n '__fish_seen_subcommand_from backup' -F
complete -c agentwal -n '__fish_seen_subcommand_from bundle' -l no-secrets -d 'known forms of secrets are replaced, and counted; no checkpoints'
complete -c agentwal -n '__fish_seen_subcommand_from bundle' -l rules -x -d 'more forms of secrets: docs/secrets.md'
complete -c agentwal -n '__fish_seen_subcommand_from bundle' -F
complete -c agentwal -n '__fish_seen_subcommand_from merge' -l keep-both -d 'instead of a refusal: the other one becomes a fork, ID@ and 8 digits of OTHER\'s id'
complete -c agentwal -n '__fish_seen_subcommand_from index' -l deep -d 'the index of tools\' results too'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -l redact -d 'hide the content of each entry that has one'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -l erase -d 'with --redact: leave no byte of it in any file of the store'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -l views -d 'with --erase: rewrite the views that the store knows of'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -l possible -d 'list the possible ones too'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -l rules -x -d 'more forms of secrets: docs/secrets.md'
complete -c agentwal -n '__fish_seen_subcommand_from secrets' -F
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l older-than -x -d 'sessions last active longer ago'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l keep-last -x -d 'keep the N newest ones whatever the other rules say; alone: move all others'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l max-bytes -x -d 'the oldest ones, until the others have at most SIZE of records'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l project -x -d 'only sessions of this project'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l archive -x -d 'copy them to DIR first, a store, which is made if needed'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l all -d 'permit rules that leave no session'
complete -c agentwal -n '__fish_seen_subcommand_from retain' -l apply -d 'move them'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l replace -d 'add: replace the remote that the store has'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l take-over -d 'push: from another copy of the store; pull: make DIR the store that writes'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l follow -d 'push: upload records as they become durable; pull: keep the copy current; until interrupted'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l rate -x -d 'push --follow: at most N parts a second, each a PUT; default 20'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l now -d 'compact: even after few pushes'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l anew -d 'compact: from the whole store as gc left it; implies --now'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l erase -d 'compact: as gc --erase, then remove at once all that the remote had'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -l store-id -x -d 'pull, sessions: which of several stores in the remote'
complete -c agentwal -n '__fish_seen_subcommand_from remote' -F
complete -c agentwal -n '__fish_seen_subcommand_from restore' -F
complete -c agentwal -n '__fish_seen_subcommand_from help' -a 'import adopt export follow path dialects list show tree cat latest children projects project stats search usage watch resume serve view create append fork title head meta doc compact-session redact delete undelete pin checkpoint checkpoints checkpoint-show checkpoint-diff checkpoint-delete checkpoint-export checkpoint-import checkpointing rewind init check salvage migrate accept-damage gc backup bundle merge index secrets retain remote restore help'
