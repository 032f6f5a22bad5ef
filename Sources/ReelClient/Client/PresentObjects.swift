public import ReelCore

/// The objects of a stream at the moment when an event is queued, with all own events that were queued before.
///
/// `SyncStream.publish(making:)` lends it to a closure. It is not valid after that.
public struct PresentObjects {
    private let stream: StreamState
    private let overlay: Overlay
    /// Returns the stream with the changes of this turn.
    private let moment: () throws(ReelError) -> StreamSnapshot

    init(_ stream: StreamState, moment: @escaping () throws(ReelError) -> StreamSnapshot) {
        self.stream = stream
        self.moment = moment
        overlay = stream.look()
    }

    /// Returns the object; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    /// - Throws: A code that begins with `store_` if the store failed or the object is damaged.
    public func object(_ model: String, id: String) throws(ReelError) -> SyncObject? {
        guard let state = try state(model, id), !state.isDeleted else { return nil }
        return SyncObject(state, readAt: stream.readPosition)
    }

    /// Returns all objects of a model, sorted by the bytes of their ids. The time and the memory that it takes follow
    /// the number of these objects, and the client waits meanwhile.
    ///
    /// - Parameter model: the model of the objects.
    /// - Throws: A code that begins with `store_` if the store failed or an object is damaged.
    public func objects(_ model: String) throws(ReelError) -> [SyncObject] { try moment().objects(model) }

    /// Returns true if the object was deleted and the stream still remembers it. A new object needs another id.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    /// - Throws: A code that begins with `store_` if the store failed or the object is damaged.
    public func isDeleted(_ model: String, id: String) throws(ReelError) -> Bool {
        try state(model, id)?.isDeleted == true
    }

    private func state(_ model: String, _ id: String) throws(ReelError) -> ObjectState? {
        let key = Fold.key(model: model, id: id)
        let state = overlay.covers(key) ? overlay.object(key) : stream.fold?.object(key)
        if let failure = stream.fold?.storedObjects?.failure { throw failure }
        return state
    }
}

@available(*, unavailable)
extension PresentObjects: Sendable {}
