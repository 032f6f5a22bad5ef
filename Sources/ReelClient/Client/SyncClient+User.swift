public import ReelCore

// The user whose events these are.
extension SyncClient {
    /// The `by` that the connected node gives to events of this client.
    enum Stamp: Equatable {
        /// The token cannot be read here.
        case unknown
        /// The node has no keys.
        case nobody
        /// The name as it stands between the quotes of canonical JSON, as the fold keeps it.
        case user([UInt8])

        init(user: String?, hasKeys: Bool) {
            guard hasKeys else {
                self = .nobody
                return
            }
            guard let user else {
                self = .unknown
                return
            }
            var quoted: [UInt8] = []
            quoted.append(quoted: user)
            self = .user(Array(quoted.dropFirst().dropLast()))
        }

        /// True if this `by` is another one.
        func differs(from by: [UInt8]?) -> Bool {
            switch self {
            case .unknown: false
            case .nobody: by != nil
            case .user(let name): by != name
            }
        }
    }

    /// Gives a file store to another user, for one that was renamed, or one whose store was used without a user before.
    /// No client may have the file open. Does nothing if the store is the other user's already.
    ///
    /// What waits in the store is sent under the new name once a client opens it: what was never sent before under a
    /// new site; what the stream has already is settled; what was sent under the former name, and did not arrive before
    /// the device has read the stream, is not sent again: it could happen twice. `SyncNotice.leftSite` says how many.
    /// The former site itself stays in the stream, as only events of the former name could end it: an operator can
    /// retire it.
    ///
    /// Returns how many events wait. Throws `store_user` if the store belongs to neither of the two, `store_failed` if
    /// there is no file, and another code that begins with `store_` if it cannot be opened.
    @discardableResult
    public static func adopt(store path: String, from former: String?, to user: String) throws(ReelError) -> Int {
        guard UserName.isValid(user) else {
            throw ReelError(.storeUser, "found the user \(user.debugDescription), expected \(UserName.rule)")
        }
        let store = try DeviceStore(path: path, makesFile: false)
        try store.adopt(from: former, to: user)
        return try store.queued().values.reduce(0, +)
    }

    /// Returns the user of a file store: the one that the app names, or else the subject of the token that it gives.
    ///
    /// Throws `store_user` if the two differ, and for an app that has tokens and says nothing of the user before the
    /// first one comes: the store is read and shown before that.
    static func owner(_ named: String?, token: String?, renewsToken: Bool) throws(ReelError) -> String? {
        if let named, !UserName.isValid(named) {
            throw ReelError(.storeUser, "found the user \(named.debugDescription), expected \(UserName.rule)")
        }
        guard let token else {
            if named == nil, renewsToken {
                throw ReelError(.storeUser, "found `renewToken` and no user, expected `store: .file(path, user: …)`")
            }
            return named
        }
        let subject = TokenSubject.read(token)
        guard let owner = named ?? subject else {
            throw ReelError(.storeUser, "the token has no subject that can be read; expected a JWT with \"sub\"")
        }
        if owner != subject { throw ReelError(tokenOf: subject, expected: owner) }
        return owner
    }

    /// True if the token may be said: it is one of the user. What the first one says is the user of a client that keeps
    /// nothing; before that, and without a user, any token is for the node to judge.
    func takes(_ token: String) -> Bool {
        let subject = TokenSubject.read(token)
        guard let user else {
            user = subject
            return true
        }
        guard user == subject else {
            notify(.wrongUser(expected: user, found: subject))
            return false
        }
        return true
    }

    /// A node has said welcome: its keys, or none, decide which name the events get.
    func stamps(_ welcome: ServerFrame.Welcome) {
        let new = Stamp(user: user, hasKeys: welcome.tokenS != nil)
        guard new != stamp else { return }
        stamp = new
        for stream in opened.values { stream.outbox.userChanged() }
    }

    /// False as long as nothing that waits in the stream could be consumed by anybody.
    func maySend(_ stream: StreamState, _ fold: Fold) -> Bool {
        let known: (Site) -> Outbox.KnownSite? = { [stamp] site in
            fold.site(site).map {
                .init(op: $0.op, seq: $0.seq, isForeign: stamp.differs(from: $0.by), isEnded: $0.end != .none)
            }
        }
        // Also where nothing may be sent: it may wait for an op of a site that has ended.
        stream.outbox.position = .init(fold)
        stream.outbox.leaveEndedSites(known)
        guard stream.outbox.nextSendMs != nil else { return true }
        stream.outbox.leaveForeignSites(known)
        return stream.outbox.mayBegin(
            knows: { fold.site($0) != nil },
            hasRoom: fold.hasRoomForSite,
            nowMs: transport.nowMs
        )
    }
}

extension ReelError {
    /// A token of another user.
    init(tokenOf found: String?, expected: String) {
        let found = found.map { "the subject \($0.debugDescription)" } ?? "no subject that can be read"
        self.init(.storeUser, "the token has \(found), expected \(expected.debugDescription)")
    }
}
