import java.net.InetAddress;

public class Rates {
    static void findBank(int number) throws Exception {
        try {
            InetAddress.getByName("bank" + number + ".example.net");
        } catch (java.net.UnknownHostException e) {
            Thread.sleep(20);
        }
    }

    public static void main(String[] a) throws Exception {
        for (int t = 0; t < 4; t++) {
            final int first = t;
            new Thread(() -> {
                try {
                    for (int i = first; ; i += 4) findBank(i);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }).start();
        }
    }
}
