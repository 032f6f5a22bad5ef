internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The receiver of the events of all requests. Used on the queue only, except for the calls of the session.
final class RequestDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let executor: QueueExecutor
    private var calls: [Int: RequestCall] = [:]

    init(_ executor: QueueExecutor) { self.executor = executor }

    func start(_ call: RequestCall, _ task: URLSessionDataTask) {
        calls[task.taskIdentifier] = call
        call.start(task)
    }

    // The head comes with the first piece of the body, or with the end.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        executor.execute { self.calls[dataTask.taskIdentifier]?.received(data, dataTask.response) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let reason = error.map(SessionError.text)
        executor.execute { self.calls.removeValue(forKey: task.taskIdentifier)?.completed(task.response, reason) }
    }

    // A redirection is an answer like any other. The token is for the node that the app has named.
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
