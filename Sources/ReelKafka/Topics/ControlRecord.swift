internal import ReelCore
internal import ReelLog

// A record of `reel.control`. Its key is `current`, and its value describes the current log, as canonical JSON.
extension CurrentLog {
    static let key = Array("current".utf8)

    /// `{"deployment":"9f…","epoch":"9f…","n":0,"partitions":4}`.
    var json: [UInt8] {
        var object = JSONObjectWriter()
        object.member("deployment", deployment.description)
        object.member("epoch", epoch.description)
        object.member("n", number)
        object.member("partitions", partitions)
        return object.finish()
    }

    /// Reads a record; nil if it is not a valid record of the topic.
    init?(key: Bytes, json: Bytes) {
        guard key.elementsEqual(Self.key) else { return nil }
        var epoch: Epoch?
        // An older build writes no deployment. Compaction may have removed the first record, so the epoch is used
        // instead.
        var deployment: Deployment?
        var (number, partitions): (Int64?, Int64?)
        var reader = JSONReader(json, levels: 4, shape: .badRequest)
        do throws(ReelError) {
            try reader.object { (reader, name) throws(ReelError) in
                switch name.raw {
                case "deployment":
                    let text = try reader.string()
                    deployment = Deployment(text)
                    guard deployment != nil else {
                        throw ReelError(.badRequest, "found the deployment \(text.debugDescription)")
                    }
                case "epoch": epoch = Epoch(try reader.string())
                case "n": number = try reader.integer()
                case "partitions": partitions = try reader.integer()
                default: try reader.skip()
                }
            }
        } catch {
            return nil
        }
        guard let epoch, let number, let partitions, number >= 0, (1...Int64(Int32.max)).contains(partitions)
        else { return nil }
        self.init(epoch: epoch, partitions: Int(partitions), number: Int(number), deployment: deployment)
    }

    /// True if this record is valid after the last valid one, `former`. Of two concurrent records the first one is
    /// valid. The first record of the topic is always valid, because compaction may have removed earlier ones.
    func follows(_ former: CurrentLog?) -> Bool {
        former.map { number == $0.number + 1 } ?? true
    }
}
