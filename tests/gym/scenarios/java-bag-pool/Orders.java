import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

public class Orders {
    static class Session {
        final AtomicInteger state = new AtomicInteger();
        final Socket socket;
        final BufferedReader in;

        Session(int port) throws Exception {
            socket = new Socket("127.0.0.1", port);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
        }

        String query(String text) throws Exception {
            OutputStream out = socket.getOutputStream();
            out.write(("GET /" + text + " HTTP/1.1\r\nHost: db\r\n\r\n").getBytes());
            for (String line = in.readLine(); !line.isEmpty(); line = in.readLine()) { }
            char[] body = new char[3];
            in.read(body);
            return new String(body);
        }
    }

    static class SessionBag {
        final List<Session> all = new CopyOnWriteArrayList<>();
        final SynchronousQueue<Session> handoff = new SynchronousQueue<>(true);
        final AtomicInteger waiters = new AtomicInteger();

        Session borrowSession(long millis) throws Exception {
            for (Session one : all) {
                if (one.state.compareAndSet(0, 1)) return one;
            }
            waiters.incrementAndGet();
            try {
                long until = System.nanoTime() + millis * 1_000_000;
                while (true) {
                    Session one = handoff.poll(until - System.nanoTime(), TimeUnit.NANOSECONDS);
                    if (one == null) throw new IllegalStateException("no session after " + millis + " ms");
                    if (one.state.compareAndSet(0, 1)) return one;
                }
            } finally {
                waiters.decrementAndGet();
            }
        }

        void giveBack(Session one) {
            one.state.set(0);
            while (waiters.get() > 0) {
                if (one.state.get() != 0 || handoff.offer(one)) return;
                Thread.yield();
            }
        }
    }

    public static void main(String[] words) throws Exception {
        SessionBag bag = new SessionBag();
        for (int i = 0; i < 3; i++) bag.all.add(new Session(Integer.parseInt(words[1])));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            int status = 200;
            try {
                Session session = bag.borrowSession(5000);
                try {
                    session.query("orders");
                } finally {
                    bag.giveBack(session);
                }
            } catch (Exception error) {
                status = 503;
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
