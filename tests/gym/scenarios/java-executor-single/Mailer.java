import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.util.concurrent.*;

public class Mailer {
    static final ExecutorService POST = Executors.newSingleThreadExecutor();
    static int mail;

    static String deliver(String to) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", mail)) {
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
            in.readLine();
            for (String line : new String[] {"HELO shop", "RCPT " + to}) {
                socket.getOutputStream().write((line + "\r\n").getBytes());
                in.readLine();
            }
            return "sent";
        }
    }

    static String sendMail(String to) throws Exception {
        return POST.submit(() -> deliver(to)).get();
    }

    public static void main(String[] args) throws Exception {
        mail = Integer.parseInt(args[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            byte[] text;
            try { text = sendMail("anna").getBytes(); } catch (Exception error) { text = "no".getBytes(); }
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
