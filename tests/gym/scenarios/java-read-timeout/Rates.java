import java.net.Socket;

public class Rates {
    static void fetchRate(int port) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(900);
            socket.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes());
            socket.getInputStream().read();
        } catch (java.net.SocketTimeoutException e) {
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 3; i++) {
            new Thread(() -> {
                try {
                    while (true) fetchRate(Integer.parseInt(args[0]));
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, "rates-" + i).start();
        }
    }
}
