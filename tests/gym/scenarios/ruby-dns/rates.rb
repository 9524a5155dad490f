require "resolv"

def find_bank
  Resolv::DNS.open(nameserver: ["127.0.0.59"]) do |dns|
    dns.timeouts = 2
    dns.getaddress("bank.example")
  end
rescue Resolv::ResolvError
  nil
end

loop { find_bank; sleep 0.05 }
