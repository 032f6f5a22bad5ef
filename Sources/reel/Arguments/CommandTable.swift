/// All commands, in the order in which the help lists them.
enum CommandTable {
    static let all: [Command] = [.fold, .replay, .help, .version]
}
