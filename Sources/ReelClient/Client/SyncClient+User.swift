public import ReelCore
internal import ReelSQLite

// The user that the device's events belong to.
extension SyncClient {
    /// The `by` that the connected node writes into events of this client.
    enum Stamp: Equatable {
        /// The user is not known, because the token cannot be read here.
        case unknown
        /// There is no `by`, because the node has no keys.
        case nobody
        /// The user name in the form between the quotes of canonical JSON, as the fold keeps it.
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

        /// True if `by` is another user than this one.
        func differs(from by: [UInt8]?) -> Bool {
            switch self {
            case .unknown: false
            case .nobody: by != nil
            case .user(let name): by != name
            }
        }
    }

    /// Gives a file store to another user. Use it for a user that was renamed, or for a store that was used without a
    /// user before. No client may have the file open. Does nothing if the store already belongs to `user`.
    ///
    /// The waiting events of the store are sent under the new name once a client opens it:
    ///
    /// - Events that were never sent are sent under a new site.
    /// - Events that the stream already has are settled.
    /// - Events that were sent under the former name are settled if they arrive before the device has read the stream.
    ///   The others are not sent again, because they could be applied twice. `SyncNotice.leftSite` gives their number.
    ///
    /// The former site itself stays in the stream, because only events of the former name could end it. An operator can
    /// retire it.
    ///
    /// - Parameters:
    ///   - path: the path of the store's file.
    ///   - former: the user that the store belongs to; nil for none.
    ///   - user: the new user.
    /// - Returns: The number of events that wait.
    /// - Throws: `store_user` if the store belongs to neither of the two. `store_failed` if there is no file. Another
    ///   code that begins with `store_` if it cannot be opened.
    @discardableResult
    public static func adopt(store path: String, from former: String?, to user: String) throws(ReelError) -> Int {
        guard UserName.isValid(user) else {
            throw ReelError(.storeUser, "found the user \(user.debugDescription), expected \(UserName.rule)")
        }
        guard FileLook(path) != nil else {
            throw ReelError(.storeFailed, "the device's store: found no file at \(path)")
        }
        let storage = try SQLiteStorage.open(device: path)
        defer { storage.close() }
        let store = try DeviceStore(storage)
        try store.adopt(from: former, to: user)
        return try store.queued().values.reduce(0, +)
    }

    /// Returns the user of a file store: the user that the app names, or else the subject of the given token.
    ///
    /// Throws `store_user` if the two differ. Also throws it if the app has tokens, names no user, and gives no first
    /// token: the store is read and shown before the first token arrives.
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

    /// True if the token may be sent: its subject is the user. A client that keeps nothing takes its user from the
    /// first token. The node decides about any other token.
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

    /// Called when a node has sent `welcome`. Its keys, or their absence, decide which user name the events get.
    func stamps(_ welcome: ServerFrame.Welcome) {
        let new = Stamp(user: user, hasKeys: welcome.tokenS != nil)
        guard new != stamp else { return }
        stamp = new
        for stream in opened.values { stream.outbox.userChanged() }
    }

    /// Returns false as long as no log could consume any waiting event of the stream.
    func maySend(_ stream: StreamState, _ fold: Fold) -> Bool {
        let known: (Site) -> Outbox.KnownSite? = { [stamp] site in
            fold.site(site).map {
                .init(op: $0.op, seq: $0.seq, isForeign: stamp.differs(from: $0.by), isEnded: $0.end != .none)
            }
        }
        // This is also needed if nothing may be sent: an event may wait for an op of a site that has ended.
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
    /// Creates the error for a token of another user.
    init(tokenOf found: String?, expected: String) {
        let found = found.map { "the subject \($0.debugDescription)" } ?? "no subject that can be read"
        self.init(.storeUser, "the token has \(found), expected \(expected.debugDescription)")
    }
}
