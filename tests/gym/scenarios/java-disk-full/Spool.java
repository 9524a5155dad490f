import java.io.FileOutputStream;
import java.io.IOException;

public class Spool {
    static void store(String path, byte[] mail) throws IOException {
        try (var out = new FileOutputStream(path)) {
            out.write(mail);
        }
    }

    public static void main(String[] args) throws Exception {
        byte[] mail = new byte[40_000];
        for (int n = 0; ; n++) {
            try {
                store(args[0] + "/" + n, mail);
            } catch (IOException e) {
                Thread.sleep(50);
            }
        }
    }
}
