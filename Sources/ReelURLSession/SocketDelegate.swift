internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The receiver of the events of all WebSockets. Used on the queue only, except for the calls of the session.
final class SocketDelegate: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
    private let executor: QueueExecutor
    private var calls: [Int: SocketCall] = [:]

    init(_ executor: QueueExecutor) { self.executor = executor }

    func start(_ call: SocketCall, _ task: URLSessionWebSocketTask, openMs: Int64) {
        calls[task.taskIdentifier] = call
        call.start(SystemSocketTask(task: task), openMs: openMs)
    }

    func urlSession(
        _ session: URLSession,
        webSocketTask task: URLSessionWebSocketTask,
        didOpenWithProtocol subprotocol: String?
    ) {
        executor.execute { self.calls[task.taskIdentifier]?.handle(.opened(subprotocol: subprotocol)) }
    }

    func urlSession(
        _ session: URLSession,
        webSocketTask task: URLSessionWebSocketTask,
        didCloseWith code: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        let (code, text) = (code.rawValue, String(decoding: reason ?? Data(), as: UTF8.self))
        executor.execute { self.calls[task.taskIdentifier]?.handle(.closed(code: code, reason: text)) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let reason = error.map(SessionError.text) ?? "the connection has ended"
        executor.execute {
            let status = (task.response as? HTTPURLResponse)?.statusCode
            // A node that refuses the handshake says why with a status.
            let refusal = status.flatMap { $0 == 101 ? nil : "status \($0) in place of 101: " } ?? ""
            self.calls.removeValue(forKey: task.taskIdentifier)?.handle(.failed(refusal + reason))
        }
    }

    // A redirection is a refusal.
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
