import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

public class Ticker {
    static void pushQuotes(SocketChannel out, ByteBuffer quotes) throws Exception {
        while (quotes.hasRemaining()) {
            out.write(quotes);
        }
    }

    public static void main(String[] words) throws Exception {
        SocketChannel out = SocketChannel.open(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])));
        out.configureBlocking(false);
        byte[] text = new byte[30000];
        while (true) {
            pushQuotes(out, ByteBuffer.wrap(text));
        }
    }
}
