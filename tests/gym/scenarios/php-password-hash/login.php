<?php
function check_login(string $user, string $secret): bool {
    static $stored = '$2y$11$BoX073.08BLIUJorNWmOr.K7/nlxUuWI80xfJSzYBZyPQRVvsYxJO';
    return password_verify($secret, $stored);
}
echo check_login('anna', 'secret') ? 'yes' : 'no';
