<?php
require __DIR__ . '/dashboard.php';

session_save_path(getenv('SESSIONS'));
session_id('u' . substr(md5('user' . ((int) ($_SERVER['QUERY_STRING'] ?? 0) % 2)), 0, 20));
session_start();
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
echo render(load_widgets($_SESSION['seen']));
