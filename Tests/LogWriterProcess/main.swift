// log-writer PATH CHECKPOINT-FRAMES NAME COUNT: a process that a test starts and kills. It appends COUNT records, 8 at
// a time, named NAME.0, NAME.1, …, to the partitions of the log in turn, and prints "ready", then a line
// "PARTITION SEQ RECORD" for each answer, then "done".

appendAll(CommandLine.arguments)
