import Testing

@Suite struct ReelPlace {}
