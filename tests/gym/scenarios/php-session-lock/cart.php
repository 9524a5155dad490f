<?php
session_id("abcdef0123456789");
session_start();
usleep(300000);
$_SESSION["n"] = ($_SESSION["n"] ?? 0) + 1;
echo $_SESSION["n"];
