import EventLogConformance
import Foundation
import ReelNet
import Synchronization
import TestSupport
import Testing

/// A request of a test whose answer is read piece by piece: server-sent events, or any bytes.
final class MessageReader: Sendable {
    /// A message: `id`, event name (nil means `message`) and `data`.
    struct Message: Equatable {
        var id: String?
        var event: String?
        var data: String

        /// Returns a member of the JSON object in `data` as text.
        func member(_ name: String) -> String? {
            let object = try? JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
            return object?[name].map { "\($0)" }
        }

        /// The seqs of the events in `data`.
        var seqs: [Int] {
            let object = try? JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
            return (object?["events"] as? [[String: Any]] ?? []).compactMap { $0["seq"] as? Int }
        }
    }

    private struct State {
        var head: HTTPResponseHead?
        var text = ""
        var bytes = 0
        var hasEnded = false
        var failure: NetError?
        var call: LoopBound<HTTPCall>?
    }

    private let state = Mutex(State())

    init(_ http: LoopBound<HTTPClient>, _ request: HTTPClientRequest) throws {
        try http.loop.sync { [self] in
            let call = http.value.send(request) { [self] event in
                state.withLock { state in
                    switch event {
                    case .head(let head): state.head = head
                    case .data(let bytes):
                        state.text += String(decoding: bytes, as: UTF8.self)
                        state.bytes += bytes.count
                    case .end: state.hasEnded = true
                    case .failed(let error): state.failure = error
                    }
                }
            }
            state.withLock { $0.call = LoopBound(call, on: http.loop) }
        }
    }

    var head: HTTPResponseHead? { state.withLock { $0.head } }
    /// True if the answer has come completely.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }
    var failure: NetError? { state.withLock { $0.failure } }
    var byteCount: Int { state.withLock { $0.bytes } }
    var text: String { state.withLock { $0.text } }

    /// The messages received so far, without comments.
    var messages: [Message] {
        let whole = text.components(separatedBy: "\n\n").dropLast()
        return whole.compactMap { block in
            var message = Message(data: "")
            for line in block.split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, !parts[0].isEmpty else { return nil }
                let value = parts[1].hasPrefix(" ") ? String(parts[1].dropFirst()) : String(parts[1])
                switch parts[0] {
                case "id": message.id = value
                case "event": message.event = value
                default: message.data += value
                }
            }
            return message
        }
    }

    /// Waits until `isMeant` accepts the messages, and returns them. Returns after a failure, too.
    func messages(_ what: String, _ isMeant: ([Message]) -> Bool) async throws -> [Message] {
        try await eventually(what) { isMeant(messages) || failure != nil }
        return messages
    }

    /// Stops reading, as a slow client does.
    func pause() { state.withLock { $0.call }?.onLoop { $0.pause() } }
    func resume() { state.withLock { $0.call }?.onLoop { $0.resume() } }
    /// Cancels the request and closes the connection.
    func cancel() { state.withLock { $0.call }?.onLoop { $0.cancel() } }
}

extension LoopBound {
    fileprivate func onLoop(_ body: @escaping @Sendable (Value) -> Void) where Value: AnyObject {
        loop.execute { body(self.value) }
    }
}
