"""Texts of many kinds, for counters of tokens and estimates."""

ENGLISH = """The review went well, but two questions stayed open. First, nobody could say why the
nightly job had been slow since Tuesday: the tables had not grown, and the machine was idle most of the
time. Second, we still have no answer to the customer who asked whether deleted files can come back. I
promised a reply by Friday. If you find the cause earlier, write it down in plain words, with the
numbers you saw, so that the next person does not have to start again from nothing."""
PYTHON = '''class Cache:
    """Keeps the last results of a slow function."""

    def __init__(self, size: int = 128) -> None:
        self._items: OrderedDict[str, bytes] = OrderedDict()
        self._size = size

    def get(self, key: str, make: Callable[[str], bytes]) -> bytes:
        if key in self._items:
            self._items.move_to_end(key)
            return self._items[key]
        value = self._items[key] = make(key)
        while len(self._items) > self._size:
            self._items.popitem(last=False)
        return value
'''
JAVASCRIPT = """export async function loadOrders({ page = 1, perPage = 50, signal } = {}) {
  const response = await fetch(`/api/orders?page=${page}&per_page=${perPage}`, { signal });
  if (!response.ok) throw new HttpError(response.status, await response.text());
  const { items, total } = await response.json();
  return { orders: items.map(toOrder).filter((order) => !order.isDeleted), pages: Math.ceil(total / perPage) };
}
"""
JSON = """{"id":"3f2b8c1e-77aa-4d0e-9f55-0c6d2a91b7e4","created_at":"2026-03-14T15:09:26.535Z","total":309.47,
"customer":{"id":48812093,"email":"ana.lopez@example.com","active":true},"note":null,
"items":[{"sku":"A-1029","quantity":3,"price":19.99},{"sku":"B-77","quantity":1,"price":249.5}],
"location":{"lat":52.520008,"lon":13.404954},"tags":["paid","eu","retry"]}"""
LOG = """081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_38865049064139660
081109 203807 222 INFO dfs.DataNode: Received block blk_-6952295868487656571 of size 67108864 from /10.251.73.220
2026-11-15 21:10:20,123 ERROR [http-nio-8080-exec-7] c.e.orders.OrderService - timeout, trace=5f2a9c0d1e7b4836
Jun 14 15:16:01 combo sshd(pam_unix)[19939]: authentication failure; uid=0 euid=0 tty=NODEVssh rhost=218.188.2.4"""
DIGESTS = """9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  src/app.py
60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752  src/log.py
iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
18446744073709551615 4611686018427387904 -9223372036854775808 3.141592653589793 2.718281828459045"""
CHINESE = """昨天的评审很顺利，但还有两个问题没有答案。第一，没有人能说明为什么夜间任务从星期二开始变
慢：数据表没有变大，机器大部分时间也是空闲的。第二，客户问删除的文件能不能恢复，我们还没有回复。我答应星
期五之前给出答复。如果你更早找到原因，请用简单的话写下来，并附上你看到的数字，这样下一个人就不必从头开始
。"""
JAPANESE = """昨日のレビューはうまくいきましたが、二つの質問が残っています。一つ目は、夜間のジョブが火
曜日から遅くなった理由です。テーブルは大きくなっておらず、マシンもほとんど空いていました。二つ目は、削除
したファイルを元に戻せるかというお客様の質問です。金曜日までに返事をすると約束しました。原因が早く分かっ
たら、見た数字と一緒に簡単な言葉で書いておいてください。"""
KOREAN = """어제 검토는 잘 끝났지만 두 가지 질문이 남았습니다. 첫째, 야간 작업이 화요일부터 왜
느려졌는지 아무도 설명하지 못했습니다. 테이블은 커지지 않았고 서버도 대부분 쉬고 있었습니다. 둘째,
삭제한 파일을 되살릴 수 있는지 묻는 고객에게 아직 답하지 못했습니다."""
RUSSIAN = """Проверка прошла хорошо, но два вопроса остались открытыми. Во-первых, никто не смог
объяснить, почему ночная задача замедлилась со вторника: таблицы не выросли, а машина почти всё время
простаивала. Во-вторых, мы до сих пор не ответили клиенту, который спросил, можно ли вернуть удалённые
файлы. Я обещал ответить до пятницы."""
ARABIC = """سارت المراجعة على نحو جيد، لكن بقي سؤالان بلا جواب. أولاً، لم يستطع أحد أن يفسر لماذا
أصبحت المهمة الليلية بطيئة منذ يوم الثلاثاء: لم تكبر الجداول، وكانت الآلة خاملة معظم الوقت. ثانياً، لم
نجب بعد العميل الذي سأل هل يمكن استعادة الملفات المحذوفة."""
HINDI = """समीक्षा अच्छी रही, लेकिन दो सवाल बाकी रह गए। पहला, कोई नहीं बता सका कि रात का काम
मंगलवार से धीमा क्यों हो गया: तालिकाएँ बड़ी नहीं हुई थीं और मशीन ज़्यादातर समय खाली थी। दूसरा, जिस
ग्राहक ने पूछा था कि मिटाई गई फ़ाइलें वापस आ सकती हैं या नहीं, उसे अब तक जवाब नहीं मिला।"""
GERMAN = """Die Durchsicht verlief gut, aber zwei Fragen blieben offen. Erstens konnte niemand
sagen, warum der nächtliche Auftrag seit Dienstag so langsam ist: Die Tabellen sind nicht gewachsen,
und der Rechner war meistens unbeschäftigt. Zweitens haben wir dem Kunden noch nicht geantwortet, der
wissen wollte, ob gelöschte Dateien wiederhergestellt werden können."""
INDONESIAN = """Peninjauan berjalan baik, tetapi dua pertanyaan masih terbuka. Pertama, tidak ada yang
bisa menjelaskan mengapa pekerjaan malam menjadi lambat sejak hari Selasa: tabelnya tidak bertambah
besar dan mesinnya lebih sering menganggur. Kedua, kami belum menjawab pelanggan yang bertanya apakah
berkas yang sudah dihapus dapat dikembalikan."""
EMOJI = """Build is green again 🎉🎉 thanks @wei 🙏 — deploying now 🚀 … done ✅ 👩\u200d💻❤️🇩🇪🇯🇵👍🏽 🤷\u200d♂️
who broke staging? 😅😂🫠 ☕️ break, back at 3 🕒 🐛🔥 fixed, please retest 🧪 ⚠️ cache is cold ❄️"""

# Text, then its counts by ctok 1.3, a reconstruction of Anthropic's own: Claude 3 to 4.6, and 4.7 onwards.
SAMPLES = {
    "english": (ENGLISH, 107, 142),
    "python": (PYTHON, 161, 186),
    "javascript": (JAVASCRIPT, 127, 159),
    "json": (JSON, 165, 196),
    "log": (LOG, 197, 232),
    "digests": (DIGESTS, 205, 226),
    "chinese": (CHINESE, 159, 158),
    "japanese": (JAPANESE, 167, 166),
    "korean": (KOREAN, 157, 156),
    "russian": (RUSSIAN, 141, 141),
    "arabic": (ARABIC, 167, 167),
    "hindi": (HINDI, 197, 197),
    "german": (GERMAN, 120, 167),
    "indonesian": (INDONESIAN, 119, 165),
    "emoji": (EMOJI, 131, 142),
}
