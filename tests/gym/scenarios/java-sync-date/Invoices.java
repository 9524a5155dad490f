import java.text.SimpleDateFormat;
import java.util.Date;

public class Invoices {
    final SimpleDateFormat format = new SimpleDateFormat("yyyy-MM-dd HH:mm:ss.SSS zzz");

    synchronized String stamp(long time) {
        String last = "";
        for (int i = 0; i < 2000; i++) last = format.format(new Date(time + i));
        return last;
    }

    public static void main(String[] args) {
        Invoices invoices = new Invoices();
        for (int i = 0; i < 16; i++)
            new Thread(() -> { for (long n = 0; ; n++) invoices.stamp(n); }, "http-" + i).start();
    }
}
