extension ErrorCode {
    /// The row of the code in the table.
    public var entry: Entry {
        switch self {
        case .badJSON:
            Entry(
                400,
                .no,
                "Not valid JSON",
                "The text is not JSON as RFC 8259 and I-JSON define it: wrong syntax or UTF-8, a key twice, a lone "
                    + "surrogate, or too many levels.",
                "Correct the program that wrote it; the message names the byte."
            )
        case .badFrame:
            Entry(
                400,
                .no,
                "No frame of the protocol",
                "The frame has an unknown type, or a member that is missing or of the wrong type.",
                "Correct the program that wrote it, or use one that speaks `reel.v1`."
            )
        case .badEvent:
            Entry(
                400,
                .no,
                "Not a valid event",
                "A member of the event is missing, unknown, out of place or of the wrong type. Or the event carries "
                    + "`seq`, `by` or `at`, which a client may not set.",
                "Correct the program that made it; the message names the place."
            )
        case .badStream:
            Entry(
                400,
                .no,
                "Not a stream's name",
                "A stream's name has 1 to 128 of the characters `A-Z a-z 0-9 . _ : ~ -`. It does not begin with `~`, "
                    + "and it does not consist of dots only.",
                "Use another name."
            )
        case .badRange:
            Entry(
                400,
                .no,
                "Not a range of seqs",
                "The range ends before it begins, or the request names more ranges or seqs than it may.",
                "Ask for less at a time: 64 ranges, 100,000 seqs."
            )
        case .badNumber:
            Entry(
                400,
                .no,
                "A number that no double holds",
                "The number is beyond the largest double, or it is an integer that a double does not represent "
                    + "exactly.",
                "Write it as a string."
            )
        case .badBase:
            Entry(
                400,
                .no,
                "A base from the future",
                "The event's `base` is not below its own seq, so its site cannot have folded it.",
                "Give the last seq that was folded when the event was made, and its epoch."
            )
        case .badRequest:
            Entry(
                400,
                .no,
                "Bad request",
                "The HTTP request has an unknown or repeated parameter, or a wrong value, head or body.",
                "Correct the request; the message names what was expected."
            )
        case .tooLarge:
            Entry(
                413,
                .no,
                "Too large",
                close: 1009,
                "The frame, body, event or object exceeds its limit in bytes or fields.",
                "Split it. `welcome` contains the limits of frames and events; docs/reference/fold.md has those of "
                    + "objects."
            )
        case .limit:
            Entry(
                400,
                .changed,
                "Too many at once",
                "One connection or request has more subscriptions, events or other items than it may have.",
                "End some of them, or use more requests."
            )
        case .unauthorized:
            Entry(
                401,
                .changed,
                "No valid token",
                close: 4401,
                "There is no token, or it is not valid, or it has expired.",
                "Get a new token and connect again; `renew` takes a new one before the old one expires."
            )
        case .forbidden:
            Entry(
                403,
                .no,
                "Not allowed",
                "The token is valid, but it does not permit this.",
                "Ask the issuer of the tokens."
            )
        case .notFound:
            Entry(404, .no, "Not found", "There is no such path, object or block.", "Check the path.")
        case .methodNotAllowed:
            Entry(
                405,
                .no,
                "Method not allowed",
                "The path exists, but the method does not.",
                "Use a method that the header `Allow` of the answer names."
            )
        case .rateLimited:
            Entry(
                429,
                .later,
                "Too fast",
                "The client sends more requests than are allowed in this time.",
                "Wait for the time that the answer names."
            )
        case .overloaded:
            Entry(
                503,
                .later,
                "Overloaded",
                close: 1013,
                "The node has as much work as it can do.",
                "Wait for the time that the answer names, or use another node."
            )
        case .logUnavailable:
            Entry(
                503,
                .later,
                "The log cannot be reached",
                "Nothing can be appended now. Events that were sent before may be in the log or not.",
                "Send the same again later: an event is never applied twice."
            )
        case .nodeBehind:
            Entry(
                503,
                .later,
                "The node is behind",
                "The node has not read up to the requested position.",
                "Wait, or ask another node."
            )
        case .internal:
            Entry(
                500,
                .later,
                "A fault of the node",
                "Something happened that should not be possible.",
                "Try again, and report it with the node's log lines."
            )
        case .damaged:
            Entry(
                500,
                .later,
                "Damaged data",
                "A file of the node is damaged, or is not of the expected kind. A damaged record of the log stops its "
                    + "partition for all nodes; the message names partition and seqs.",
                "Ask another node. The operator does what the message says: the file is put aside and never deleted, "
                    + "or `reel epoch new --skip-damaged --from-snapshot DIR` continues without the damaged records."
            )
        case .badAddress:
            Entry(
                400,
                .no,
                "Not an address",
                "An app gave the SDK a node that is not `http://HOST:PORT` or `https://HOST:PORT`, a store without "
                    + "a path, or a file of authorities without a certificate.",
                "Correct the address or the path. The client opens `/v1/socket` and all other paths of a node itself."
            )
        case .closed:
            Entry(
                400,
                .no,
                "The client or the stream is closed",
                "An app called a client or a stream of the SDK after `close`, or waited for a result when it ended.",
                "Open the stream again, or make another client with the same store. It sends the queued events."
            )
        case .epochChanged:
            Entry(
                409,
                .changed,
                "Another epoch",
                "The log has a new epoch. The seqs of the old epoch have no meaning in it.",
                "Keep the events that were not sent, start from a snapshot of the new epoch, and then send them."
            )
        case .truncated:
            Entry(
                410,
                .changed,
                "Below what is kept",
                "The position is older than what the log or the deltas still have.",
                "Start again from a snapshot."
            )
        case .aheadOfLog:
            Entry(
                409,
                .no,
                "Ahead of the log",
                "The position is beyond the end of the log. No client has read it here, or the log has lost records.",
                "Correct the position. If it was read from this log, the log has lost records: tell the operator, and "
                    + "serve nothing from this log until the cause is known."
            )
        case .diverged:
            Entry(
                409,
                .no,
                "Another history",
                "Two parties hold different events at one seq of one epoch: the log was rolled back and written "
                    + "again.",
                "Tell the operator. Keep both, and begin a new epoch from the one that is right."
            )
        case .storeBusy:
            Entry(
                503,
                .later,
                "The store is open elsewhere",
                "Another process, or another client of the same process, has the device's store open.",
                "Close the other client, or use another file. One client at a time can have a store."
            )
        case .storeFull:
            Entry(
                409,
                .changed,
                "No room for the store",
                "The disk has no space for the data that the device must keep. The store took nothing of it.",
                "Free space on the disk, then make a new client."
            )
        case .storeFailed:
            Entry(
                409,
                .changed,
                "The store cannot be used",
                "The file of the device's store cannot be opened, read or written. Its folder is missing, this user "
                    + "may not access it, or the disk reports an error.",
                "Correct what the message names, then make a new client."
            )
        case .storeFormat:
            Entry(
                409,
                .changed,
                "Not a store of this version",
                "The file belongs to another program, or a newer version of the client has written it. It was not "
                    + "changed.",
                "Use another file, or the newer version of the app."
            )
        case .storeDamaged:
            Entry(
                409,
                .no,
                "A damaged store",
                "The file of the device's store does not contain what a client has written.",
                "Move the file away together with its `-wal`, and do not delete them: they may contain events that "
                    + "were not sent. A new file gets the state from a node."
            )
        case .storeLost:
            Entry(
                409,
                .changed,
                "The store is gone",
                "The file of the device's store, or its `-wal`, was removed, replaced, moved or cut while it was "
                    + "open. Events that were published and not sent may be lost.",
                "Bring the files back if they were moved, then make a new client. Publish again what is missing."
            )
        case .storeUser:
            Entry(
                409,
                .changed,
                "Another user's store",
                "The device's store belongs to another user than the one that the app or the token names. The client "
                    + "has not read, shown or sent anything of the store.",
                "Use another file for each user, or let the former user sign out. If the user has a new name, "
                    + "`SyncClient.adopt(store:from:to:)` gives the store to it."
            )
        case .storeWaits:
            Entry(
                409,
                .changed,
                "Events wait",
                "The device's store still contains own events that the stream does not have.",
                "Wait until the queue is empty, or discard the events: `forget(_:discardingQueue: true)` for a stream, "
                    + "`signOut(ifWaiting: .erase)` for the account."
            )
        case .conflict:
            Entry(
                409,
                .no,
                "Another event has this op",
                "The site published another event with the same op before: it was cloned, or lost its memory. Or an "
                    + "`Idempotency-Key` was used with other events before.",
                "Take a new site, or a new key, and publish there the events that are not consumed."
            )
        case .gap:
            Entry(
                409,
                .changed,
                "An op is missing",
                "An op of the site before this one was not consumed or not taken, or the site has ended.",
                "Send again from the op after the last one consumed."
            )
        case .stale:
            Entry(
                409,
                .changed,
                "Too old to merge",
                "The event's base is older than the history that the fold keeps. Or its splice refers to text that "
                    + "was replaced, or to deleted text that the fold no longer knows.",
                "Fold the new events, merge, and make the event again."
            )
        case .tooManySites:
            Entry(
                409,
                .changed,
                "Too many sites",
                "The stream has as many sites as it may have.",
                "An operator retires idle sites (`reel site retire`), or sites that are no longer used end themselves "
                    + "(`last`). Then send again with a new base."
            )
        case .foreign:
            Entry(
                409,
                .no,
                "Another author's site",
                "The site began under another name than the event's `by`.",
                "Take a new site for each author."
            )
        case .duplicate:
            Entry(409, .no, "Already consumed", "The op was consumed before; nothing changes.", "Nothing.")
        case .deleted:
            Entry(
                410,
                .no,
                "Deleted",
                "The object was deleted, and there is no un-deleting.",
                "Make a new object with another id."
            )
        case .noObject:
            Entry(
                409,
                .no,
                "No such object",
                "The event updates or deletes an object that does not exist.",
                "Insert it first."
            )
        case .guard:
            Entry(
                409,
                .changed,
                "A condition does not hold",
                "A field's last writer is not the one that `if` names.",
                "Fold the new events, decide again, and publish a new event."
            )
        case .type:
            Entry(
                409,
                .no,
                "The wrong type of value",
                "`inc` needs a number, `add` and `remove` need an array, and a splice needs a string. The value is of "
                    + "another type.",
                "Write the field first, or use an operation that fits it."
            )
        case .range:
            Entry(
                409,
                .no,
                "Beyond the value",
                "A splice beyond the text, or an `inc` beyond the largest number.",
                "Count offsets in Unicode scalars of the text as it was at `base`."
            )
        case .offline:
            Entry(
                503,
                .later,
                "No connection",
                "The device has no connection to a node. It tries each node that it knows again and again.",
                "Nothing: the queue is sent after the next connection. Check the addresses of the nodes if this lasts."
            )
        case .noToken:
            Entry(
                401,
                .changed,
                "No token",
                "The app's `renewToken` threw an error, or did not answer in time.",
                "Make the function return a token; the device calls it again."
            )
        case .wrongDeployment:
            Entry(
                409,
                .changed,
                "Another deployment",
                "The node belongs to another deployment than the one that the device has met. The device sends nothing "
                    + "there.",
                "Correct the addresses of the nodes. If the deployment was replaced on purpose, adopt the new one, or "
                    + "export the queue."
            )
        case .newerLog:
            Entry(
                409,
                .changed,
                "A log of a newer version",
                "The log holds a barrier that this version of the client does not know. The client does not read the "
                    + "stream any further.",
                "Update the app."
            )
        }
    }
}

extension ErrorCode.Entry {
    fileprivate init(
        _ status: Int,
        _ retry: ErrorCode.Retry,
        _ title: String,
        close: UInt16? = nil,
        _ meaning: String,
        _ advice: String
    ) {
        self.init(status: status, close: close, retry: retry, title: title, meaning: meaning, advice: advice)
    }
}
