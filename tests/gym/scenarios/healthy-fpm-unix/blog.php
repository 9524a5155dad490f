<?php
function render_posts(): string {
    $out = '';
    for ($n = 0; $n < 200; $n++) $out .= '<p>' . htmlspecialchars("post $n & more") . '</p>';
    return $out;
}
file_put_contents(sys_get_temp_dir() . '/gym-blog-visits', time(), LOCK_EX);
echo render_posts();
