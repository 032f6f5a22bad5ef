/// The table of all commands, in the order of the help.
enum CommandTable {
    static let all: [Command] = [
        .demo,
        .serve, .gateway, .snapshot, .cluster,
        .topicCreate, .topicShow, .topicCheck, .epochNew, .logAccept,
        .streams, .siteList, .siteRetire,
        .publish, .tail, .fetch, .get, .digest,
        .ready, .doctor,
        .dump, .fold, .replay,
        .load, .check, .chaos,
        .tokenKeys, .tokenMake, .tokenShow,
        .help, .version,
    ]
}
