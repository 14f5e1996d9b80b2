"""What expressions begin with, repeat and stop at: said over and over, it makes careless ones take forever."""

PIECES = (
    *("a", "0", '"', "\\", '\\"', "'", " ", "\n", "@", "a@", "a.", ".", "-", "=", "a=", "k: ", "<", "<a>", "("),
    *("(1", "-----BEGIN PRIVATE KEY-----\n", "eyJaaaaaaaa.", "sk-", "http://a:a", "+1 ", "1-", "1 ", "a,", "a;"),
    *("a\t", "| a ", '"a":', '{"a":[', "A ", "Aa ", "1 Aa ", "Rue Aa ", "de ", "password is ", "account number "),
    *("insert into a (b,c) values (1,", "BEGIN:VCARD\nN:", "xn--", "DE12 ", "1.", "::", "a:", "user=", "--a "),
    *("- ", "'a':", "'a',", "PuTTY-User-Key-File-2\n", "Key (a)=(", "\u202e", "é", "\x00", "�", "Bearer "),
    *("<tr><th>a<td>", "copy a (b) from stdin\n", "Dear ", "Regards\n", "H.No. ", "a_", "[", "{", "cn=", "a=['a',"),
    *('a: "', "Aa <a", "aaaaaaaaaaaaaaaaaaaaweg ", "9 Aa St ", "# a\n", "Mr Aa ", "|", "(1,2),", "weg 1"),
    *("insert into a (b) values (1),(2)", "call 030-", "IBAN DE12", "田中", "王伟", "김민준", "नाम ", "اسم ", "Иван "),
    *("ул. А ", "氏名：", "東京都", "路1号", "Aa van ", "geboren 1.1.1 ", "في مدينة "),
)
