internal import ReelCore

// The user that the store belongs to.
extension DeviceStore {
    /// Opens the store for a user, nil for none. A store without streams belongs to the first user that opens it.
    ///
    /// Throws `store_user` if it belongs to another user. A store that was used without a user, or was made by a
    /// version without users, belongs to no user. A user gets such a store only by `adopt`, because its waiting events
    /// may be another user's.
    func claim(for user: String?) throws(ReelError) {
        let owner = client.user
        guard owner != user else { return }
        guard owner == nil, try isEmpty() else { throw ReelError(storeOf: owner, openedBy: user) }
        try give(to: user)
    }

    /// Gives the store from one user to another. Does nothing if it already belongs to the other user.
    func adopt(from former: String?, to user: String) throws(ReelError) {
        let owner = client.user
        if owner == user { return }
        guard owner == former else { throw ReelError(storeOf: owner, adoptedFrom: former) }
        try give(to: user)
    }

    /// Notes that the user signs out. From now on, whatever happens, a client that opens the store finds it empty.
    func signOut() throws(ReelError) {
        try commit(durably: true) { changes throws(ReelError) in changes.put(StoreKey.signedOut, []) }
    }

    /// True if the user has signed out, and the content was not removed.
    static func isSignedOut(_ storage: any DeviceStorage) throws(ReelError) -> Bool {
        try storage.snapshot().value(for: StoreKey.signedOut) != nil
    }

    /// Removes everything from a storage whose user has signed out.
    static func removeSignedOut(_ storage: any DeviceStorage) throws(ReelError) {
        guard try isSignedOut(storage) else { return }
        var changes = StorageChanges()
        changes.removeRange(from: [], to: [.max])
        try storage.commit(changes, durably: true)
    }

    private func give(to user: String?) throws(ReelError) {
        try commit(durably: true) { changes throws(ReelError) in changeClient(&changes) { $0.user = user } }
    }
}

extension ReelError {
    /// Creates the error that a client of `user` cannot open a store of `owner`; nil: no user.
    fileprivate init(storeOf owner: String?, openedBy user: String?) {
        let advice =
            switch (owner, user) {
            case (nil, _): "use another file, or give it to the user with `SyncClient.adopt(store:from:to:)`"
            case (_, nil): "name the user of the store, or use another file"
            default:
                "use another file for each user, let the former user sign out, or call"
                    + " `SyncClient.adopt(store:from:to:)` if the user has a new name"
            }
        self.init(.storeUser, "the store belongs to \(Self.name(owner)), found \(Self.name(user)): \(advice)")
    }

    /// Creates the error that `adopt` was called with another user than the owner of the store; nil: no user.
    fileprivate init(storeOf owner: String?, adoptedFrom former: String?) {
        let (found, expected) = (former?.debugDescription ?? "nil", owner?.debugDescription ?? "nil")
        self.init(
            .storeUser,
            "found `from: \(found)`, expected `from: \(expected)`: the store belongs to \(Self.name(owner))"
        )
    }

    private static func name(_ user: String?) -> String {
        user.map { "the user \($0.debugDescription)" } ?? "no user"
    }
}
