# The formula of Homebrew. From a clone: brew install --HEAD tools/homebrew/agentwal.rb
class Agentwal < Formula
  desc "Append-only log engine for the sessions of AI agents"
  license "MIT"
  head "file://#{File.expand_path("../..", __dir__)}", using: :git

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "libdeflate"
  depends_on "libmicrohttpd"
  depends_on "lz4"
  depends_on "openssl@3"
  depends_on "zstd"

  uses_from_macos "curl"
  uses_from_macos "expat"
  uses_from_macos "sqlite"
  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    ENV["AGENTWAL_STORE"] = testpath/"store"
    system bin/"agentwal", "init"
    system bin/"agentwal", "create", "--id", "one"
    pipe_output("#{bin}/agentwal append one", %Q({"type":"note","payload":{"text":"kept"}}\n), 0)
    assert_match "kept", shell_output("#{bin}/agentwal cat one")
    system bin/"agentwal", "check"
  end
end
