internal import ReelCore

// Reading. No call waits for a network, for another stream, or for a write to the disk.
extension SyncStream {
    /// Calls `body` with the stream at one moment, so that several reads agree with each other. Can be called on any
    /// thread, and from code that cannot await.
    ///
    /// - Parameter body: reads objects.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`. `closed` if the stream or the client is closed. A code that begins with
    ///   `store_` if the store failed.
    public func read<T>(_ body: (StreamSnapshot) throws -> T) throws -> T {
        try client.read([self]) { try body($0[0]) }
    }

    /// Returns the object with all own events; nil if it does not exist, was deleted, or has not arrived yet. Can be
    /// called on any thread, and from code that cannot await.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func object(_ model: String, id: String) throws -> SyncObject? {
        try read { try $0.object(model, id: id) }
    }

    /// Returns the object with this name; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func object(_ name: ObjectName) throws -> SyncObject? { try object(name.model, id: name.id) }

    /// Returns all objects of a model with all own events, sorted by the bytes of their ids. Can be called on any
    /// thread, and from code that cannot await. The time and the memory that it takes follow the number of these
    /// objects.
    ///
    /// - Parameter model: the model of the objects.
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func objects(_ model: String) throws -> [SyncObject] {
        try read { try $0.objects(model) }
    }

    /// The objects of the stream without the own events that still wait.
    public var confirmed: ConfirmedObjects { ConfirmedObjects(stream: self) }
}

/// The confirmed objects of a stream: the device's fold, without the own events that still wait in the queue. Every
/// device that has folded the same seq of the same epoch has the same objects.
public struct ConfirmedObjects: Sendable {
    let stream: SyncStream

    /// Returns the object; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func object(_ model: String, id: String) throws -> SyncObject? {
        try stream.read { try $0.confirmed.object(model, id: id) }
    }

    /// Returns the object with this name; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func object(_ name: ObjectName) throws -> SyncObject? { try object(name.model, id: name.id) }

    /// Returns all objects of a model, sorted by the bytes of their ids.
    ///
    /// - Parameter model: the model of the objects.
    /// - Throws: `closed` if the stream or the client is closed. A code that begins with `store_` if the store failed.
    public func objects(_ model: String) throws -> [SyncObject] {
        try stream.read { try $0.confirmed.objects(model) }
    }
}

extension SyncClient {
    /// Calls `body` with several streams of this client at one moment, so that reads of all of them agree with each
    /// other. Can be called on any thread, and from code that cannot await.
    ///
    /// - Parameters:
    ///   - streams: open streams of this client.
    ///   - body: reads objects. It gets the streams in the same order.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`. `closed` if the client or one of the streams is closed, or if a stream belongs
    ///   to another client. A code that begins with `store_` if the store failed.
    nonisolated public func read<T>(_ streams: [SyncStream], _ body: ([StreamSnapshot]) throws -> T) throws -> T {
        if let foreign = streams.first(where: { $0.client !== self }) {
            throw ReelError(.closed, "found the stream \(foreign.id) of another client, expected one of this client")
        }
        return try body(try content.moment(of: streams.map(\.opening), damageReport))
    }

    /// Tells the client that a reader has found a damaged object.
    nonisolated var damageReport: StreamSnapshot.DamageReport {
        { [weak self] name, layers, error in
            Task { [weak self] in await self?.foundDamage(in: name, layers, error) }
        }
    }
}
