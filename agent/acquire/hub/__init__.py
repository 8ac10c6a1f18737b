"""What a repository holds, asked of the Hub, whose word is not trusted."""
