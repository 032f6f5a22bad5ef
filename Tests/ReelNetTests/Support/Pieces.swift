@testable import ReelNet

/// The result of a decoder: its events, and the error that it threw at the end, if any.
struct Outcome<Event: Equatable, Violation: Equatable>: Equatable {
    var events: [Event] = []
    var violation: Violation?
}

func decodeRequests(
    _ pieces: [[UInt8]],
    _ limits: HTTPLimits = HTTPLimits()
) -> Outcome<HTTPRequestDecoder.Event, HTTPViolation> {
    var decoder = HTTPRequestDecoder(limits)
    var outcome = Outcome<HTTPRequestDecoder.Event, HTTPViolation>()
    do throws(HTTPViolation) {
        for piece in pieces {
            var position = 0
            while let event = try decoder.next(piece.span, &position) { outcome.events.append(event) }
        }
    } catch {
        outcome.violation = error
    }
    return outcome
}

/// The events of an answer, with bytes instead of ranges. Adjacent pieces of a body are joined.
enum AnswerEvent: Equatable {
    case head(HTTPResponseHead)
    case body([UInt8])
    case end
}

func decodeAnswers(_ pieces: [[UInt8]]) -> Outcome<AnswerEvent, HTTPViolation> {
    var decoder = HTTPResponseDecoder()
    var outcome = Outcome<AnswerEvent, HTTPViolation>()
    do throws(HTTPViolation) {
        for piece in pieces {
            var position = 0
            while let event = try decoder.next(piece.span, &position) {
                switch event {
                case .head(let head): outcome.events.append(.head(head))
                case .end: outcome.events.append(.end)
                case .data(let range):
                    if case .body(let body)? = outcome.events.last {
                        outcome.events[outcome.events.count - 1] = .body(body + piece[range])
                    } else {
                        outcome.events.append(.body(Array(piece[range])))
                    }
                }
            }
        }
    } catch {
        outcome.violation = error
    }
    return outcome
}

func decodeFrames(
    _ pieces: [[UInt8]],
    _ role: WebSocketDecoder.Role,
    maxMessage: Int = 1 << 20
) -> Outcome<WebSocketDecoder.Event, WebSocketViolation> {
    var decoder = WebSocketDecoder(role, maxMessage: maxMessage)
    var outcome = Outcome<WebSocketDecoder.Event, WebSocketViolation>()
    do throws(WebSocketViolation) {
        for piece in pieces {
            var position = 0
            while let event = try decoder.next(piece.span, &position) { outcome.events.append(event) }
        }
    } catch {
        outcome.violation = error
    }
    return outcome
}

/// Returns the bytes cut in two at every offset, and cut into single bytes.
func allCuts(_ bytes: [UInt8]) -> [[[UInt8]]] {
    (1..<max(1, bytes.count)).map { [Array(bytes[..<$0]), Array(bytes[$0...])] } + [bytes.map { [$0] }]
}
