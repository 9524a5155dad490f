import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

class EdiWriter {
    private final OutputStream out;

    EdiWriter(OutputStream out) {
        this.out = out;
    }

    void writeSegment(String tag, String... fields) throws IOException {
        writeText(tag);
        for (String field : fields) {
            out.write('+');
            writeText(field);
        }
        out.write('\'');
    }

    private void writeText(String text) throws IOException {
        for (byte one : text.getBytes(StandardCharsets.ISO_8859_1)) {
            out.write(one);
        }
    }
}

public class Invoice {
    static void export(String path) {
        try (OutputStream out = new FileOutputStream(path)) {
            EdiWriter writer = new EdiWriter(out);
            for (int line = 0; line < 1500; line++) {
                writer.writeSegment("LIN", Integer.toString(line), "5901234123457", "EN");
                writer.writeSegment("QTY", "47", Integer.toString(line % 90));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) {
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
        timer.scheduleWithFixedDelay(() -> export(args[0]), 0, 100, TimeUnit.MILLISECONDS);
    }
}
