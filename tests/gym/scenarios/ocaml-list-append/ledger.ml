let events = ref []

let add_event amount =
  events := !events @ [amount];
  List.length !events

let answer_client fd =
  let buffer = Bytes.create 4096 in
  if Unix.read fd buffer 0 4096 > 0 then begin
    let count = ref 0 in
    for i = 1 to 20 do count := add_event i done;
    let body = string_of_int !count in
    let text = Printf.sprintf "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" (String.length body) body in
    ignore (Unix.write_substring fd text 0 (String.length text))
  end;
  Unix.close fd

let () =
  for i = 1 to 5000 do events := i :: !events done;
  let listener = Unix.socket Unix.PF_INET Unix.SOCK_STREAM 0 in
  Unix.setsockopt listener Unix.SO_REUSEADDR true;
  Unix.bind listener (Unix.ADDR_INET (Unix.inet_addr_loopback, int_of_string Sys.argv.(1)));
  Unix.listen listener 64;
  while true do
    let fd, _ = Unix.accept listener in
    (try answer_client fd with Unix.Unix_error _ -> Unix.close fd)
  done
