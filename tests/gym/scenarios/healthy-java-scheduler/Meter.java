import com.sun.net.httpserver.*;
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Meter {
    static final Deque<Long> READINGS = new ConcurrentLinkedDeque<>();
    static volatile long average;

    static void takeReading() {
        READINGS.addLast(System.nanoTime() % 1000);
        if (READINGS.size() > 5000) READINGS.removeFirst();
    }

    static void computeAverage() {
        average = READINGS.parallelStream().collect(Collectors.summarizingLong(n -> n)).getSum();
    }

    public static void main(String[] args) throws Exception {
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(3);
        timer.scheduleAtFixedRate(Meter::takeReading, 0, 20, TimeUnit.MILLISECONDS);
        timer.scheduleAtFixedRate(Meter::computeAverage, 1, 1, TimeUnit.SECONDS);
        BlockingQueue<String> audit = new LinkedBlockingQueue<>(1000);
        new Thread(() -> {
            try {
                while (true) audit.take();
            } catch (InterruptedException e) {
            }
        }, "audit").start();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.createContext("/", exchange -> {
            audit.offer("read");
            byte[] body = Long.toString(average).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
