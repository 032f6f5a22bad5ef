// `log-writer PATH CHECKPOINT-FRAMES NAME COUNT` is a process that a test starts and kills. It appends COUNT records
// with the names NAME.0, NAME.1, … to the partitions of the log in turn, and waits for at most 8 answers at a time. It
// prints "ready", then a line "PARTITION SEQ RECORD" for each answer, then "done".

appendAll(CommandLine.arguments)
