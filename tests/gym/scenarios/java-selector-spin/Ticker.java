import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;

public class Ticker {
    static final ByteBuffer input = ByteBuffer.allocate(4096);

    static void flush(SelectionKey key) throws Exception {
        @SuppressWarnings("unchecked")
        Queue<ByteBuffer> queue = (Queue<ByteBuffer>) key.attachment();
        while (!queue.isEmpty()) {
            ((SocketChannel) key.channel()).write(queue.poll());
        }
    }

    static void serveReady(Selector selector, ServerSocketChannel server) throws Exception {
        selector.select();
        Iterator<SelectionKey> keys = selector.selectedKeys().iterator();
        while (keys.hasNext()) {
            SelectionKey key = keys.next();
            keys.remove();
            if (key.isAcceptable()) {
                SocketChannel client = server.accept();
                client.configureBlocking(false);
                client.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE, new ArrayDeque<ByteBuffer>());
                continue;
            }
            if (key.isReadable()) {
                input.clear();
                if (((SocketChannel) key.channel()).read(input) < 0) {
                    key.channel().close();
                    continue;
                }
            }
            if (key.isWritable()) {
                flush(key);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel server = ServerSocketChannel.open();
        server.bind(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            serveReady(selector, server);
        }
    }
}
