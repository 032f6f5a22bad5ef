internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The task of a socket: a `URLSessionWebSocketTask`, or a script in tests.
protocol SocketTask {
    func resume()
    func send(_ text: String, then: @escaping @Sendable ((any Error)?) -> Void)
    func receive(then: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void)
    func ping(then: @escaping @Sendable ((any Error)?) -> Void)
    func cancel(_ code: Int, _ reason: String)
}

/// The task of the system.
struct SystemSocketTask: SocketTask {
    let task: URLSessionWebSocketTask

    func resume() { task.resume() }

    func send(_ text: String, then: @escaping @Sendable ((any Error)?) -> Void) {
        task.send(.string(text), completionHandler: then)
    }

    func receive(then: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void) {
        task.receive(completionHandler: then)
    }

    func ping(then: @escaping @Sendable ((any Error)?) -> Void) { task.sendPing(pongReceiveHandler: then) }

    func cancel(_ code: Int, _ reason: String) {
        task.cancel(with: URLSessionWebSocketTask.CloseCode(rawValue: code) ?? .goingAway, reason: Data(reason.utf8))
    }
}
