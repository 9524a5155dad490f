<?php
function find_relay($name) {
    return gethostbyname($name);
}
while (true) {
    find_relay("relay" . rand() . ".example.net");
    usleep(100000);
}
