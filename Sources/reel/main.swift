print("reel 0.1.0")
