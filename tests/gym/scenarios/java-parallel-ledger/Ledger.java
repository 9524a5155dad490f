import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

public class Ledger {
    static class Account {
        private long balance;

        synchronized void post(int amount) {
            balance += amount;
            try {
                Thread.sleep(3); // the bank's journal
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }

        synchronized long balance() {
            return balance;
        }
    }

    public static void main(String[] args) throws Exception {
        var account = new Account();
        var workers = Executors.newFixedThreadPool(10);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            var posts = IntStream.range(0, 4)
                .mapToObj(n -> CompletableFuture.runAsync(() -> account.post(n), workers))
                .toArray(CompletableFuture[]::new);
            CompletableFuture.allOf(posts).join();
            byte[] answer = ("" + account.balance()).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
