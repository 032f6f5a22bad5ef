import ReelCore

@testable import ReelClient

/// The objects of a stream by its name; none if the store has failed or was lost.
extension SyncClient {
    nonisolated func object(_ model: String, _ id: String, of name: StreamName) -> SyncObject? {
        (try? SyncStream(client: self, name: name).object(model, id)) ?? nil
    }

    nonisolated func objects(_ model: String, of name: StreamName) -> [SyncObject] {
        (try? SyncStream(client: self, name: name).objects(model)) ?? []
    }

    nonisolated func confirmed(_ model: String, _ id: String, of name: StreamName) -> SyncObject? {
        (try? SyncStream(client: self, name: name).confirmed.object(model, id)) ?? nil
    }
}
