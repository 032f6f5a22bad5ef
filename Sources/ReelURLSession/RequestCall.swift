internal import Foundation
internal import ReelClient

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A request that is running. Used on the queue only.
final class RequestCall: TransportHandle, @unchecked Sendable {
    private var state = ResponseState()
    private var receive: (@Sendable (TransportResponse) -> Void)?
    private var task: URLSessionDataTask?

    init(_ receive: @escaping @Sendable (TransportResponse) -> Void) { self.receive = receive }

    func start(_ task: URLSessionDataTask) {
        self.task = task
        task.resume()
    }

    func cancel() {
        receive = nil
        task?.cancel()
        task = nil
    }

    func fail(_ reason: String) { end(.failed(reason)) }

    fileprivate func received(_ piece: Data, _ response: URLResponse?) {
        noteHead(response)
        if let body = state.body(Array(piece)) { receive?(body) }
    }

    fileprivate func completed(_ response: URLResponse?, _ error: String?) {
        if error == nil { noteHead(response) }
        end(state.end(error: error))
    }

    private func noteHead(_ response: URLResponse?) {
        guard let response = response as? HTTPURLResponse else { return }
        let length = response.expectedContentLength
        if let head = state.head(status: response.statusCode, length: length < 0 ? nil : length) { receive?(head) }
    }

    private func end(_ last: TransportResponse) {
        let receive = receive
        (self.receive, task) = (nil, nil)
        receive?(last)
    }
}

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
