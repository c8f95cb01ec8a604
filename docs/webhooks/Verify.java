import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Checks one webhook notification; copy verify() into your receiver.
 *
 * <pre>API_KEY=trb_... java Verify.java SIGNATURE [SIGNATURE_NEXT] &lt; body.json</pre>
 *
 * Needs nothing but Java 17. Use your own JSON library instead of member().
 */
public final class Verify {
    private static final DateTimeFormatter STRICT = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss'Z'");

    /**
     * Checks the raw body against the values of X-Service-Hmac-SHA256 and
     * X-Service-Hmac-SHA256-Next. Call it before anything parses the body.
     */
    public static void verify(byte[] body, List<String> signatures, String apiKey, Duration maxAge)
            throws GeneralSecurityException {
        if (apiKey == null || apiKey.isEmpty()) {
            throw new SecurityException("no API key");
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(apiKey.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] want = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.US_ASCII);
        boolean known = false;
        for (String s : signatures) {
            // isEqual takes the same time wherever the two differ
            known |= MessageDigest.isEqual(s.trim().toLowerCase().getBytes(StandardCharsets.UTF_8), want);
        }
        if (!known) {
            throw new SecurityException("the signature does not belong to this body and key");
        }
        Instant at = LocalDateTime.parse(member(body, "delivered_at"), STRICT).toInstant(ZoneOffset.UTC);
        Duration age = Duration.between(at, Instant.now()).abs();
        if (age.compareTo(maxAge) > 0) {
            throw new SecurityException("delivered_at is " + age + " away from now");
        }
    }

    /** Reads a member whose value needs no escapes, as delivered_at and webhook_id never do. */
    static String member(byte[] body, String name) {
        Matcher m = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"\\\\]*)\"").matcher(new String(body, StandardCharsets.UTF_8));
        if (!m.find()) {
            throw new SecurityException("no " + name + " in the notification");
        }
        return m.group(1);
    }

    public static void main(String[] args) throws IOException, GeneralSecurityException {
        byte[] body = System.in.readNBytes(64 * 1024);
        try {
            verify(body, List.of(args), System.getenv("API_KEY"), Duration.ofMinutes(5));
        } catch (SecurityException | java.time.DateTimeException problem) {
            System.err.println(problem.getMessage());
            System.exit(1);
        }
        System.out.println("ok " + member(body, "webhook_id"));
    }
}
