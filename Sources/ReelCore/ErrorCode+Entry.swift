extension ErrorCode {
    /// What belongs to a code.
    public struct Entry: Equatable, Sendable {
        /// The status of an HTTP answer.
        public var status: Int
        /// The code that a WebSocket is closed with, where the connection does not stay.
        public var close: UInt16?
        /// Whether the same, sent again, can succeed.
        public var retry: Retry
        /// A few words for a heading, the same every time.
        public var title: String
        /// What has happened.
        public var meaning: String
        /// What to do.
        public var advice: String
    }

    /// The status of an HTTP answer with this code.
    public var status: Int { entry.status }

    /// The code that a WebSocket is closed with for this; nil: the connection stays.
    public var close: UInt16? { entry.close }

    /// The code's heading.
    public var title: String { entry.title }

    /// The row of the code in the table.
    public var entry: Entry {
        switch self {
        case .badJSON:
            Entry(
                400,
                .no,
                "Not valid JSON",
                "The text is no JSON as RFC 8259 and I-JSON have it: bad syntax or UTF-8, a key twice, a lone "
                    + "surrogate, or too many levels.",
                "Correct the program that wrote it; the message says the byte."
            )
        case .badFrame:
            Entry(
                400,
                .no,
                "No frame of the protocol",
                "A frame of an unknown type, or with a member that is missing or of the wrong type.",
                "Correct the program that wrote it, or use one that speaks `reel.v1`."
            )
        case .badEvent:
            Entry(
                400,
                .no,
                "Not a valid event",
                "An event with a member that is missing, unknown, out of place or of the wrong type; or one that "
                    + "carries `seq`, `by` or `at`, which are not a client's to give.",
                "Correct the program that made it; the message says the place."
            )
        case .badStream:
            Entry(
                400,
                .no,
                "Not a stream's name",
                "A stream's name is 1 to 128 of `A-Z a-z 0-9 . _ : ~ -`, not of dots only, not with `~` in front.",
                "Use another name."
            )
        case .badRange:
            Entry(
                400,
                .no,
                "Not a range of seqs",
                "A range that ends before it begins, or more ranges or seqs than one request may name.",
                "Ask for less at a time: 64 ranges, 100,000 seqs."
            )
        case .badNumber:
            Entry(
                400,
                .no,
                "A number that no double holds",
                "A number beyond the largest double, or an integer that would become another one.",
                "Write it as a string."
            )
        case .badBase:
            Entry(
                400,
                .no,
                "A base from the future",
                "The event's `base` is not below its own seq: its site cannot have folded that.",
                "Give the last seq that was folded when the event was made, and its epoch."
            )
        case .badRequest:
            Entry(
                400,
                .no,
                "Bad request",
                "An HTTP request with an unknown or doubled parameter, or with a bad value, head or body.",
                "Correct the request; the message says what was expected."
            )
        case .tooLarge:
            Entry(
                413,
                .no,
                "Too large",
                close: 1009,
                "A frame, body, event or object beyond its limit in bytes or fields.",
                "Split it. The limits stand in `welcome`, those of objects in docs/reference/fold.md."
            )
        case .limit:
            Entry(
                400,
                .changed,
                "Too many at once",
                "More subscriptions, events or other things than one connection or request may have.",
                "Give some up, or use more requests."
            )
        case .unauthorized:
            Entry(
                401,
                .changed,
                "No valid token",
                close: 4401,
                "No token, or one that is not valid or no longer so.",
                "Get a new token and connect again; `renew` takes a new one before the old one expires."
            )
        case .forbidden:
            Entry(
                403,
                .no,
                "Not allowed",
                "The token is valid and does not permit this.",
                "Ask whoever gives the tokens."
            )
        case .notFound:
            Entry(404, .no, "Not found", "There is no such path, object or block.", "Check the path.")
        case .methodNotAllowed:
            Entry(
                405,
                .no,
                "Method not allowed",
                "The path exists, the method does not.",
                "Use a method of the answer's `Allow`."
            )
        case .rateLimited:
            Entry(
                429,
                .later,
                "Too fast",
                "More requests than are allowed in this time.",
                "Wait as long as the answer says."
            )
        case .overloaded:
            Entry(
                503,
                .later,
                "Overloaded",
                close: 1013,
                "The node has as much to do as it can.",
                "Wait as long as the answer says, or use another node."
            )
        case .logUnavailable:
            Entry(
                503,
                .later,
                "The log cannot be reached",
                "Nothing can be appended now. What was sent before may be in the log or not.",
                "Send the same again later: an event is never applied twice."
            )
        case .nodeBehind:
            Entry(
                503,
                .later,
                "The node is behind",
                "The node has not read as far as was asked.",
                "Wait, or ask another node."
            )
        case .internal:
            Entry(
                500,
                .later,
                "A fault of the node",
                "Something happened that should not be possible.",
                "Try again; report it with the node's log."
            )
        case .damaged:
            Entry(
                500,
                .later,
                "Damaged data",
                "A file of the node is damaged, or is not of the kind that it should be. A damaged record of the log"
                    + " stops its partition for all nodes; the message names partition and seqs.",
                "Ask another node. The operator does what the message says: the file is put aside and never deleted, or"
                    + " `reel epoch new --skip-damaged --from-snapshot DIR` continues without the damaged records."
            )
        case .badAddress:
            Entry(
                400,
                .no,
                "Not an address",
                "An app gave the SDK a node that is no `http://HOST:PORT` or `https://HOST:PORT`, or a store without a "
                    + "path.",
                "Correct the address. The client opens `/v1/socket` and all other paths of a node itself."
            )
        case .closed:
            Entry(
                400,
                .no,
                "The client is closed",
                "An app called a client of the SDK after `close`, or waited for something as the client ended.",
                "Make another client with the same store: what was queued is sent from there."
            )
        case .epochChanged:
            Entry(
                409,
                .changed,
                "Another epoch",
                "The log was begun anew since: the seqs of the old epoch mean nothing in the new one.",
                "Keep what was not sent, begin again from a snapshot of the new epoch, then send it."
            )
        case .truncated:
            Entry(
                410,
                .changed,
                "Below what is kept",
                "The position is older than what the log or the deltas still have.",
                "Begin again from a snapshot."
            )
        case .aheadOfLog:
            Entry(
                409,
                .no,
                "Ahead of the log",
                "The position lies beyond the log's end: nobody has read that here, or the log has lost something.",
                "Correct the position. Only if it was read here has the log lost something: tell the operator, and "
                    + "serve nothing from this log until it is understood."
            )
        case .diverged:
            Entry(
                409,
                .no,
                "Another history",
                "Two parties hold different events at one seq of one epoch: a log was rolled back and rewritten.",
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
                "The disk has no room for what the device must keep. Nothing of it was taken.",
                "Make room on the disk, then make a new client."
            )
        case .storeFailed:
            Entry(
                409,
                .changed,
                "The store cannot be used",
                "The file of the device's store cannot be opened, read or written: its folder is missing, this user "
                    + "has no right to it, or the disk reports an error.",
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
                "The file of the device's store does not hold what a client has written.",
                "Move the file away together with the `-wal` beside it, and do not delete them: they may hold events "
                    + "that were not sent. A new file gets the state from a node."
            )
        case .storeLost:
            Entry(
                409,
                .changed,
                "The store is gone",
                "The file of the device's store, or the `-wal` beside it, was removed, replaced, moved or cut while "
                    + "it was open. What was published and not sent may be lost.",
                "Bring the files back if they were moved, then make a new client. Publish again what is missing."
            )
        case .storeUser:
            Entry(
                409,
                .changed,
                "Another user's store",
                "The device's store belongs to another user than the one that the app or the token names. Nothing of "
                    + "the store was read, shown or sent.",
                "Open the store of this user. If the user has a new name, `SyncClient.adopt` gives the store to it."
            )
        case .storeWaits:
            Entry(
                409,
                .changed,
                "Events wait",
                "The device's store still holds own events that the stream does not have.",
                "Wait until the queue is empty, or say that the events may be discarded."
            )
        case .conflict:
            Entry(
                409,
                .no,
                "Another event has this op",
                "The site published another event with the same op before: it was cloned, or lost its memory. Or an "
                    + "`Idempotency-Key` came with other events before.",
                "Take a new site, or a new key, and publish what is not yet consumed there."
            )
        case .gap:
            Entry(
                409,
                .changed,
                "An op is missing",
                "An op of the site before this one was not consumed or not taken, or the site has ended.",
                "Send again from the op behind the last one consumed."
            )
        case .stale:
            Entry(
                409,
                .changed,
                "Too old to merge",
                "The event's base is older than the history that the fold keeps, or its splice counts on text that "
                    + "was replaced, or of which so much was deleted that the fold has forgotten what.",
                "Fold what is new, merge, and make the event again."
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
                "An update or delete of an object that never was.",
                "Insert it first."
            )
        case .guard:
            Entry(
                409,
                .changed,
                "A condition does not hold",
                "A field's last writer is not the one that `if` names.",
                "Fold what is new, decide again, and publish a new event."
            )
        case .type:
            Entry(
                409,
                .no,
                "The wrong type of value",
                "`inc` on what is no number, `add` or `remove` on no array, or a splice on no string.",
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
                "Make the function give a token; the device calls it again."
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
