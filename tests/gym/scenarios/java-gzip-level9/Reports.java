import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.zip.*;

public class Reports {
    static final byte[] REPORT = makeReport();

    static byte[] makeReport() {
        StringBuilder text = new StringBuilder();
        for (int n = 0; n < 40000; n++) text.append(n * 7919 % 10007).append(';').append(n % 13 == 0 ? "\n" : "row");
        return text.toString().getBytes();
    }

    static byte[] packReport() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DeflaterOutputStream packed = new DeflaterOutputStream(out, new Deflater(9))) {
            packed.write(REPORT);
        }
        return out.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(6));
        server.createContext("/", exchange -> {
            byte[] text = packReport();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
