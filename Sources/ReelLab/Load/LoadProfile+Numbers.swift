extension LoadProfile.Number {
    /// The range of valid values.
    public var bounds: ClosedRange<Int> {
        switch self {
        case .streams: 1...100_000
        case .rate: 1...10_000_000
        case .size: 1...200_000
        case .storm, .seconds: 1...1_000_000
        case .publishers, .sleepers, .readers, .editors, .coldstarts: 0...1_000_000
        }
    }

    /// The help text, without a full stop.
    public var help: String {
        switch self {
        case .streams: "so many streams, NAME-0, NAME-1 and so on; 1 if nothing is said"
        case .publishers: "clients that publish; 10 if nothing is said"
        case .sleepers: "publishers that are offline for four of every ten seconds"
        case .readers: "clients that listen; 10 if nothing is said"
        case .editors: "clients that publish and listen, and write in one text together"
        case .coldstarts: "readers a second that begin with nothing"
        case .rate: "events a second, all who publish together; 100 if nothing is said"
        case .size: "bytes of an event, about; 200 if nothing is said"
        case .storm: "every so many seconds all connections are cut at once"
        case .seconds: "so long; until Ctrl-C if nothing is said"
        }
    }
}

extension LoadPlan {
    /// Takes the numbers of a profile.
    public mutating func take(_ numbers: [LoadProfile.Number: Int]) {
        for (number, value) in numbers {
            switch number {
            case .streams: break
            case .publishers: publishers = value
            case .sleepers: sleepers = value
            case .readers: readers = value
            case .editors: editors = value
            case .coldstarts: coldStarts = value
            case .rate: rate = Double(value)
            case .size: size = value
            case .storm: stormSeconds = Double(value)
            case .seconds: seconds = Double(value)
            }
        }
    }
}
