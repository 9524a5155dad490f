import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class Desk {
    static void serveOne(Socket socket) throws Exception {
        try (socket) {
            socket.getInputStream().read(new byte[4096]);
            Thread.sleep(150);
            socket.getOutputStream().write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".getBytes());
        }
    }

    public static void main(String[] a) throws Exception {
        ServerSocket server = new ServerSocket(Integer.parseInt(a[0]), 2, InetAddress.getByName("127.0.0.1"));
        while (true) serveOne(server.accept());
    }
}
