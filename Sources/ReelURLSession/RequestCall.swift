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

    func received(_ piece: Data, _ response: URLResponse?) {
        noteHead(response)
        if let body = state.body(Array(piece)) { receive?(body) }
    }

    func completed(_ response: URLResponse?, _ error: String?) {
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
