extension CanonicalReader {
    /// The current position in a readable form: `fields.title`, or `events[1].id` in a batch. Empty outside of all
    /// members.
    var place: String {
        /// An open object or array, with the member or the index of the element that is being read.
        enum Level { case object(Slice?), array(Int) }
        var levels: [Level] = []
        var index = 0
        while index < min(position, count) {
            switch (base[index], levels.last) {
            case (ASCII.openBrace, _): levels.append(.object(nil))
            case (ASCII.openBracket, _): levels.append(.array(0))
            case (ASCII.closeBrace, _), (ASCII.closeBracket, _): levels.removeLast(levels.isEmpty ? 0 : 1)
            case (ASCII.comma, .array(let number)): levels[levels.count - 1] = .array(number + 1)
            case (ASCII.comma, .object): levels[levels.count - 1] = .object(nil)
            case (ASCII.quote, let level):
                let start = index + 1
                index = start
                while index < count, base[index] != ASCII.quote { index += base[index] == ASCII.backslash ? 2 : 1 }
                if case .object(nil) = level, index < position {
                    levels[levels.count - 1] = .object(Slice(start: start, count: index - start))
                }
            default: break
            }
            index += 1
        }
        var path = ""
        for level in levels {
            switch level {
            case .object(let key?): path += (path.isEmpty ? "" : ".") + JSONText(bytes(key)).string
            case .object(nil): break
            case .array(let number): path += "[\(number)]"
            }
        }
        return path
    }
}
